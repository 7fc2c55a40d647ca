//! Hosts in network namespaces, wired with the emulator.
