//! Transparent interception: TPROXY rules, policy routes, and sockets with others' addresses.
