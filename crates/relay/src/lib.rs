//! Many byte streams on one XSTP session: what a gateway does, without I/O.
#![forbid(unsafe_code)]
