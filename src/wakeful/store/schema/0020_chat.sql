-- oldest: 12
-- People in chats: who is paired with a connector, the codes to pair with, who receives, what came in, what was pressed.

CREATE TABLE people (
    connector text NOT NULL,
    sender    text NOT NULL,           -- the id the chat service knows the person by
    role      text NOT NULL,           -- viewer, operator or admin
    name      text,
    source    text NOT NULL,           -- file (allow_from) or code
    paired_at bigint NOT NULL,
    PRIMARY KEY (connector, sender)
);

CREATE TABLE pairing_codes (
    hash       text PRIMARY KEY,
    connector  text NOT NULL,
    role       text NOT NULL,
    expires_at bigint NOT NULL,
    tries      integer NOT NULL        -- wrong codes that were written while this one was open
);

CREATE TABLE receivers (
    account   text PRIMARY KEY,        -- the hash of the token
    connector text NOT NULL,
    node      bigint NOT NULL,         -- the one that receives
    until     bigint NOT NULL,         -- and for how long others leave it to that node
    position  bigint NOT NULL          -- the first update that was not taken yet
);

CREATE TABLE chat_messages (
    id        bigint PRIMARY KEY,
    connector text NOT NULL,
    sender    text NOT NULL,
    name      text,
    role      text NOT NULL,
    text      text NOT NULL,
    at        bigint NOT NULL,
    open      smallint NOT NULL        -- 1 until it was handed to those who listen
);
CREATE INDEX chat_messages_open ON chat_messages (connector, id) WHERE open = 1;
CREATE INDEX chat_messages_at ON chat_messages (at) WHERE open = 0;

CREATE TABLE presses (
    delivery_id bigint NOT NULL,
    button      integer NOT NULL,
    sender      text NOT NULL,
    at          bigint NOT NULL,
    said        text NOT NULL,         -- what the press did
    PRIMARY KEY (delivery_id, button)
);
CREATE INDEX presses_at ON presses (at);

CREATE TABLE press_answers (
    id        bigint PRIMARY KEY,
    connector text NOT NULL,
    query     text NOT NULL,           -- the press to answer
    said      text NOT NULL,
    chat      text,
    message   text,                    -- the message whose buttons change
    buttons   text                     -- JSON: what is left of them; none: they stay
);
CREATE INDEX press_answers_connector ON press_answers (connector, id);
