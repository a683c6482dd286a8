-- oldest: 2
-- What a run asked people, and what they said.

ALTER TABLE run_details ADD COLUMN approval text;  -- JSON list of questions, each with who decided, when and why
