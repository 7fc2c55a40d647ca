//! A connection to nf_tables, the kernel's packet filter, without the `nft` program.
//!
//! ```text
//! ┌───────────────┬──────────┬──────────┬─────┬──────────────┐   one datagram is one
//! │ BATCH_BEGIN   │ NEWTABLE │ NEWCHAIN │ ... │ BATCH_END    │   transaction: all of it
//! └───────────────┴──────────┴──────────┴─────┴──────────────┘   takes effect, or nothing
//! each: netlink header (16) · family, version, resource (4) · attributes
//! ```

use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use super::InterceptError;
use super::attributes::{Attributes, find};
use super::families;
use super::ruleset::{Chain, Plan};
use crate::service::handover;

/// The subsystem of `NETLINK_NETFILTER` that this is, in the upper byte of message types.
const SUBSYSTEM: u16 = 10;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;

const NEW_TABLE: u16 = (SUBSYSTEM << 8) | libc::NFT_MSG_NEWTABLE as u16;
const GET_TABLE: u16 = (SUBSYSTEM << 8) | libc::NFT_MSG_GETTABLE as u16;
const DELETE_TABLE: u16 = (SUBSYSTEM << 8) | libc::NFT_MSG_DELTABLE as u16;
const NEW_CHAIN: u16 = (SUBSYSTEM << 8) | libc::NFT_MSG_NEWCHAIN as u16;
const NEW_SET: u16 = (SUBSYSTEM << 8) | libc::NFT_MSG_NEWSET as u16;
const NEW_ELEMENT: u16 = (SUBSYSTEM << 8) | libc::NFT_MSG_NEWSETELEM as u16;
const DELETE_ELEMENT: u16 = (SUBSYSTEM << 8) | libc::NFT_MSG_DELSETELEM as u16;
const NEW_RULE: u16 = (SUBSYSTEM << 8) | libc::NFT_MSG_NEWRULE as u16;

/// `NFPROTO_INET`: IPv4 and IPv6 in one table.
const FAMILY_INET: u8 = 1;
/// `NFT_TABLE_F_OWNER`: the table belongs to the socket that created it, and is removed with it.
const TABLE_OWNED: u32 = 1 << 1;
/// `NFTA_TABLE_NAME`, `NFTA_TABLE_FLAGS`, `NFTA_TABLE_OWNER`
const TABLE_NAME: u16 = 1;
const TABLE_FLAGS: u16 = 2;
const TABLE_OWNER: u16 = 7;

const REQUEST: u16 = libc::NLM_F_REQUEST as u16;
const ACK: u16 = libc::NLM_F_ACK as u16;
const CREATE: u16 = libc::NLM_F_CREATE as u16;
const APPEND: u16 = libc::NLM_F_APPEND as u16;
const HEADER: usize = 16;

/// Maximum time for the kernel's response, which normally is there before `send` returns.
const PATIENCE: Duration = Duration::from_secs(5);

/// An existing table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Table {
    /// The netlink port of the process that owns it, where the kernel knows owners.
    pub(super) owner: Option<u32>,
}

/// Opens a socket to the packet filter and its log.
pub(super) fn nfnetlink() -> Result<Socket, InterceptError> {
    let call = "socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER)";
    let refused = |source| InterceptError::refused(call, source, "nfnetlink");
    let protocol = Protocol::from(libc::NETLINK_NETFILTER);
    let socket =
        Socket::new(Domain::from(libc::AF_NETLINK), Type::RAW, Some(protocol)).map_err(refused)?;
    socket.set_read_timeout(Some(PATIENCE)).map_err(refused)?;
    Ok(socket)
}

/// A connection to the packet filter of the network namespace in which it was opened.
#[derive(Debug)]
pub(super) struct Nftables {
    socket: Socket,
    sequence: u32,
}

impl Nftables {
    pub(super) fn open() -> Result<Self, InterceptError> {
        // The tables of a process that is replaced belong to its socket.
        let socket = match handover::filter() {
            Some(socket) => Socket::from(socket),
            None => nfnetlink()?,
        };
        // Long lists make long batches, which a smaller buffer limits.
        let _ = socket.set_send_buffer_size(1 << 20);
        Ok(Self { socket, sequence: 0 })
    }

    /// Returns the socket.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Whether a table with this owner can be replaced: nobody or this socket has it.
    pub(super) fn may_replace(&self, table: Table) -> bool {
        table.owner.is_none_or(|owner| owner == self.port())
    }

    /// Returns the socket's netlink port; 0 if the kernel does not say.
    fn port(&self) -> u32 {
        let storage = self.socket.local_addr().ok();
        // SAFETY: the address of a netlink socket is a `sockaddr_nl`, which the storage has room for.
        let address =
            storage.map(|storage| unsafe { *storage.as_ptr().cast::<libc::sockaddr_nl>() });
        address.map_or(0, |address| address.nl_pid)
    }

    /// Returns the table `name`, if it exists.
    pub(super) fn table(&mut self, name: &str) -> Result<Option<Table>, InterceptError> {
        let body = Attributes::new().text(TABLE_NAME, name);
        let mut batch = Batch::new(self.sequence);
        let words = format!("NFT_MSG_GETTABLE ({name})");
        batch.push(GET_TABLE, FAMILY_INET, REQUEST, &body, words, "nf_tables");
        let mut found = None;
        let answer = self.exchange(&batch, |kind, payload| {
            if kind == NEW_TABLE {
                let owner = find(payload.get(4..).unwrap_or_default(), TABLE_OWNER);
                let owner =
                    owner.and_then(|bytes| Some(u32::from_be_bytes(bytes.try_into().ok()?)));
                found = Some(Table { owner });
            }
        });
        match answer {
            Ok(()) => Ok(found),
            Err(error) if error.errno() == Some(libc::ENOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Installs the plan's table in one transaction, in place of the table `old` if there is one.
    pub(super) fn install(&mut self, plan: &Plan, old: Option<&str>) -> Result<(), InterceptError> {
        match self.install_as(plan, old, TABLE_OWNED) {
            // Kernels before 5.12 know no owners.
            Err(error)
                if matches!(error.errno(), Some(libc::EOPNOTSUPP | libc::EINVAL))
                    && error.to_string().contains("NEWTABLE") =>
            {
                self.install_as(plan, old, 0)
            }
            result => result,
        }
    }

    /// Installs a table as on a kernel without owners.
    #[cfg(test)]
    pub(super) fn install_unowned(&mut self, plan: &Plan) -> Result<(), InterceptError> {
        self.install_as(plan, None, 0)
    }

    fn install_as(
        &mut self,
        plan: &Plan,
        old: Option<&str>,
        flags: u32,
    ) -> Result<(), InterceptError> {
        let table = &plan.table;
        let named = Attributes::new().text(TABLE_NAME, table);
        let mut batch = Batch::new(self.sequence);
        batch.control(BATCH_BEGIN, "nf_tables");
        if let Some(old) = old {
            let words = format!("NFT_MSG_DELTABLE ({old})");
            let old = Attributes::new().text(TABLE_NAME, old);
            batch.push(DELETE_TABLE, FAMILY_INET, REQUEST, &old, words, "");
        }
        let body = named.number(TABLE_FLAGS, flags);
        let words = format!("NFT_MSG_NEWTABLE ({table})");
        batch.push(NEW_TABLE, FAMILY_INET, REQUEST | CREATE, &body, words, "nf_tables");
        for chain in &plan.chains {
            push_chain(&mut batch, table, chain);
        }
        if let Some(deferred) = &plan.deferred {
            push_sets(&mut batch, table);
            push_elements(&mut batch, table, deferred);
        }
        for chain in &plan.chains {
            for (index, rule) in chain.rules.iter().enumerate() {
                let body = Attributes::new()
                    .text(1, table) // NFTA_RULE_TABLE
                    .text(2, chain.name) // NFTA_RULE_CHAIN
                    .nest(4, rule.expressions.attributes()); // NFTA_RULE_EXPRESSIONS
                let words = format!("NFT_MSG_NEWRULE ({table} {} {})", chain.name, index + 1);
                let flags = REQUEST | CREATE | APPEND;
                batch.push(NEW_RULE, FAMILY_INET, flags, &body, words, rule.needs);
            }
        }
        batch.acknowledge_last();
        batch.control(BATCH_END, "");
        self.exchange(&batch, |_, _| {})
    }

    /// Replaces the elements of the sets of `table` by `deferred`, in one transaction.
    pub(super) fn set_deferred(
        &mut self,
        table: &str,
        deferred: &[SocketAddr],
    ) -> Result<(), InterceptError> {
        let mut batch = Batch::new(self.sequence);
        batch.control(BATCH_BEGIN, "nf_tables");
        for (set, _) in families::SETS {
            let body = element_list(table, set);
            let words = format!("NFT_MSG_DELSETELEM ({table} {set})");
            batch.push(DELETE_ELEMENT, FAMILY_INET, REQUEST, &body, words, "");
        }
        push_elements(&mut batch, table, deferred);
        batch.acknowledge_last();
        batch.control(BATCH_END, "");
        self.exchange(&batch, |_, _| {})
    }

    /// Removes the table `name`.
    pub(super) fn remove(&mut self, name: &str) -> Result<(), InterceptError> {
        let named = Attributes::new().text(TABLE_NAME, name);
        let mut batch = Batch::new(self.sequence);
        batch.control(BATCH_BEGIN, "nf_tables");
        let words = format!("NFT_MSG_DELTABLE ({name})");
        batch.push(DELETE_TABLE, FAMILY_INET, REQUEST | ACK, &named, words, "");
        batch.control(BATCH_END, "");
        self.exchange(&batch, |_, _| {})
    }

    /// Sends a batch and reads the responses, up to that of its last message.
    fn exchange(
        &mut self,
        batch: &Batch,
        mut answer: impl FnMut(u16, &[u8]),
    ) -> Result<(), InterceptError> {
        let first = batch.first;
        let last = batch.awaited;
        self.sequence = first.wrapping_add(batch.requests.len() as u32);
        let failed = |index: usize, source| {
            let (words, needs) = &batch.requests[index];
            InterceptError::refused(words.clone(), source, needs)
        };
        self.socket.send(&batch.bytes).map_err(|source| failed(last, source))?;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let received = self.socket.read(&mut buffer).map_err(|source| failed(last, source))?;
            let mut rest = &buffer[..received];
            while let Some((header, payload, next)) = split_message(rest) {
                rest = next;
                let index = header.sequence.wrapping_sub(first) as usize;
                if index >= batch.requests.len() {
                    continue; // a response of an abandoned exchange
                }
                if header.kind != libc::NLMSG_ERROR as u16 {
                    answer(header.kind, payload);
                    if index == last && header.kind == NEW_TABLE {
                        return Ok(());
                    }
                    continue;
                }
                match errno(payload) {
                    0 if index == last => return Ok(()),
                    0 => {}
                    code => {
                        let source = io::Error::from_raw_os_error(code);
                        let error = failed(index, source);
                        self.drain();
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Discards the remaining responses to a failed batch.
    fn drain(&mut self) {
        let mut buffer = vec![0; 64 * 1024];
        if self.socket.set_nonblocking(true).is_ok() {
            while self.socket.read(&mut buffer).is_ok_and(|n| n > 0) {}
            let _ = self.socket.set_nonblocking(false);
        }
    }
}

fn push_chain(batch: &mut Batch, table: &str, chain: &Chain) {
    const PREROUTING: u32 = 0; // NF_INET_PRE_ROUTING
    const MANGLE: i32 = -150; // NF_IP_PRI_MANGLE: before routing, behind connection tracking
    const ACCEPT: u32 = 1; // NF_ACCEPT
    let mut body = Attributes::new()
        .text(1, table) // NFTA_CHAIN_TABLE
        .text(3, chain.name); // NFTA_CHAIN_NAME
    if chain.hooked {
        let hook = Attributes::new()
            .number(1, PREROUTING) // NFTA_HOOK_HOOKNUM
            .put(2, &MANGLE.to_be_bytes()); // NFTA_HOOK_PRIORITY
        body = body
            .nest(4, &hook) // NFTA_CHAIN_HOOK
            .number(5, ACCEPT) // NFTA_CHAIN_POLICY
            .text(7, "filter"); // NFTA_CHAIN_TYPE
    }
    let words = format!("NFT_MSG_NEWCHAIN ({table} {})", chain.name);
    batch.push(NEW_CHAIN, FAMILY_INET, REQUEST | CREATE, &body, words, "nf_tables");
}

fn push_sets(batch: &mut Batch, table: &str) {
    for (id, (set, key_len)) in (1..).zip(families::SETS) {
        let body = Attributes::new()
            .text(1, table) // NFTA_SET_TABLE
            .text(2, set) // NFTA_SET_NAME
            .number(3, 0) // NFTA_SET_FLAGS
            .number(4, 0) // NFTA_SET_KEY_TYPE, which only the program nft reads
            .number(5, key_len) // NFTA_SET_KEY_LEN
            .number(10, id); // NFTA_SET_ID
        let words = format!("NFT_MSG_NEWSET ({table} {set})");
        batch.push(NEW_SET, FAMILY_INET, REQUEST | CREATE, &body, words, "nft_set_hash");
    }
}

/// Adds each of `deferred` to the set of its family. The caller bounds how many there are.
fn push_elements(batch: &mut Batch, table: &str, deferred: &[SocketAddr]) {
    for (set, _) in families::SETS {
        let its = deferred.iter().filter(|address| families::set_for(address.ip()) == set);
        let elements = its.fold(Attributes::new(), |all, &address| {
            let value = Attributes::new().put(1, &families::key(address)); // NFTA_DATA_VALUE
            let element = Attributes::new().nest(1, &value); // NFTA_SET_ELEM_KEY
            all.nest(1, &element) // NFTA_LIST_ELEM
        });
        if elements.as_bytes().is_empty() {
            continue;
        }
        let body = element_list(table, set).nest(3, &elements); // NFTA_SET_ELEM_LIST_ELEMENTS
        let words = format!("NFT_MSG_NEWSETELEM ({table} {set})");
        batch.push(NEW_ELEMENT, FAMILY_INET, REQUEST | CREATE, &body, words, "");
    }
}

fn element_list(table: &str, set: &str) -> Attributes {
    Attributes::new()
        .text(1, table) // NFTA_SET_ELEM_LIST_TABLE
        .text(2, set) // NFTA_SET_ELEM_LIST_SET
}

/// Messages that are sent together, and the error text for each.
#[derive(Debug)]
struct Batch {
    bytes: Vec<u8>,
    /// The first message's sequence number; the others follow.
    first: u32,
    /// For each message: description of the call, and the kernel modules that it needs.
    requests: Vec<(String, &'static str)>,
    /// Index of the message whose response is the last.
    awaited: usize,
    /// Offset of the last message in `bytes`.
    last_at: usize,
}

impl Batch {
    fn new(first: u32) -> Self {
        Self { bytes: Vec::new(), first, requests: Vec::new(), awaited: 0, last_at: 0 }
    }

    /// Appends a message that begins or ends the batch.
    fn control(&mut self, kind: u16, needs: &'static str) {
        let awaited = self.awaited;
        let words = "nf_tables batch over NETLINK_NETFILTER".to_string();
        self.push(kind, 0, REQUEST, &Attributes::new(), words, needs);
        if kind == BATCH_END {
            self.awaited = awaited;
        }
    }

    fn push(
        &mut self,
        kind: u16,
        family: u8,
        flags: u16,
        body: &Attributes,
        words: String,
        needs: &'static str,
    ) {
        let length = HEADER + 4 + body.as_bytes().len();
        let sequence = self.first.wrapping_add(self.requests.len() as u32);
        self.last_at = self.bytes.len();
        self.bytes.extend_from_slice(&(length as u32).to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        self.bytes.extend_from_slice(&flags.to_ne_bytes());
        self.bytes.extend_from_slice(&sequence.to_ne_bytes());
        self.bytes.extend_from_slice(&0u32.to_ne_bytes());
        // The family, version 0, and for a batch's ends the subsystem, in network order.
        let resource = if kind < (1 << 8) { SUBSYSTEM } else { 0 };
        self.bytes.extend_from_slice(&[family, 0]);
        self.bytes.extend_from_slice(&resource.to_be_bytes());
        self.bytes.extend_from_slice(body.as_bytes());
        self.awaited = self.requests.len();
        self.requests.push((words, needs));
    }

    /// Requests a response to the last message. One to each would overrun the receive buffer when
    /// there are many; errors are reported in any case.
    fn acknowledge_last(&mut self) {
        let at = self.last_at + 6;
        let flags = u16::from_ne_bytes([self.bytes[at], self.bytes[at + 1]]) | ACK;
        self.bytes[at..at + 2].copy_from_slice(&flags.to_ne_bytes());
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) kind: u16,
    sequence: u32,
}

/// Splits `bytes` into the first message's header, its payload, and the rest; `None` at the end
/// or if the bytes are not a message.
pub(super) fn split_message(bytes: &[u8]) -> Option<(Header, &[u8], &[u8])> {
    let header = bytes.first_chunk::<HEADER>()?;
    let word = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
    let length = u32::from_ne_bytes(word(0)) as usize;
    let payload = bytes.get(HEADER..length)?;
    let next = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    let kind = u16::from_ne_bytes([header[4], header[5]]);
    Some((Header { kind, sequence: u32::from_ne_bytes(word(8)) }, payload, next))
}

/// Returns the errno of an `NLMSG_ERROR`; 0 is an acknowledgement.
pub(super) fn errno(payload: &[u8]) -> i32 {
    payload.first_chunk().map_or(libc::EPROTO, |bytes| i32::from_ne_bytes(*bytes).wrapping_neg())
}

#[cfg(test)]
mod tests;
