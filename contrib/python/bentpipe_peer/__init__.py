"""A second implementation of the bentpipe protocol, written from docs/spec alone.

The modules follow the documents: `datagram`, `noise`, `suites` and `association` implement
docs/spec/association.md; `segment`, `receiver`, `sender` and `session` the sealed profile of
docs/spec/xstp.md; `frames`, `stream` and `relay` docs/spec/relay.md. All of these are free of
input and output: the time is an argument, in seconds, and datagrams are byte strings. `peer`
binds them to UDP and TCP sockets with asyncio.
"""
