"""Who gets a place among the connections, and who gives way, without a network."""

from __future__ import annotations

import pytest

from wakeful.routing.settings import ConnectionLimits
from wakeful.surfaces.api.connections import ConnectionOwner, Connections

pytestmark = pytest.mark.promise("X18")


class Client:
    """A connection of an address: idle since then, unless it is being answered."""

    def __init__(self, address, since, *, is_idle=True):
        self.origin, self.since, self.may_give_way = ConnectionOwner(address, is_proxy=False), since, is_idle
        self.transport, self.is_closed = self, False

    def abort(self):
        self.is_closed = True


def connected(*clients, most=4):
    """Connections with these clients in their places."""
    found = Connections(ConnectionLimits(most=most))
    assert all(found.admit(client) for client in clients)
    return found


def closed(clients):
    return [client.is_closed for client in clients]


def test_the_address_that_holds_most_gives_way_first_and_there_who_is_idle_longest():
    clients = [Client("a", 1), Client("b", 5), Client("b", 4), Client("c", 2)]
    places = connected(*clients)
    assert places.admit(Client("d", 9))
    assert closed(clients) == [False, False, True, False]
    assert places.admit(Client("e", 10))
    assert closed(clients) == [True, False, True, False], "now each holds one: the longest idle"


def test_who_is_being_answered_keeps_its_place_and_a_newcomer_is_turned_away():
    clients = [Client(name, 1, is_idle=False) for name in "abcd"]
    places = connected(*clients)
    assert not places.admit(Client("e", 9))
    assert closed(clients) == [False] * 4
    places.release(clients[0])
    assert places.admit(Client("e", 9))


def test_an_address_at_its_share_makes_room_among_its_own():
    clients = [Client("b", 1), Client("a", 3), Client("a", 2)]
    places = connected(*clients)
    assert places.admit(Client("a", 9))
    assert closed(clients) == [False, False, True]
    busy = [Client("z", 1, is_idle=False) for _ in range(2)]
    full = connected(*busy)
    assert not full.admit(Client("z", 9))
    assert full.admit(Client("y", 9))


def test_a_server_that_ends_takes_no_new_connection():
    places = connected(Client("a", 1))
    places.ending = True
    assert not places.admit(Client("b", 2))


def test_nothing_is_kept_of_an_address_that_has_left():
    clients = [Client(f"192.0.2.{n}", n) for n in range(8)]
    places = Connections(ConnectionLimits(most=4))
    for client in clients:
        assert places.admit(client)
    for client in clients:
        places.release(client)
    assert places._held == {}
