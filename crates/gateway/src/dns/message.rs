//! DNS messages (RFC 1035, with EDNS by RFC 6891), as far as a forwarder reads and changes them.
//!
//! A stored response has the octets of the name server. Of these the forwarder changes the id, the
//! flags, the letters' case in the question, and the TTLs; the OPT record belongs to one hop and is
//! written for each client. Types and record data are passed on unread, except SOA for negative
//! answers (RFC 2308) and addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use units::Span;

/// Size of the header in octets.
const HEADER: usize = 12;
/// Maximum size of a name in octets (RFC 1035, section 3.1).
const MAX_NAME: usize = 255;
/// Maximum size of a UDP response without EDNS, and with it: a packet of 1,280 octets at most.
const PLAIN_UDP: u16 = 512;
const MAX_UDP: u16 = 1232;

pub(crate) const A: u16 = 1;
const CNAME: u16 = 5;
const SOA: u16 = 6;
pub(crate) const AAAA: u16 = 28;
const OPT: u16 = 41;
pub(crate) const SVCB: u16 = 64;
pub(crate) const HTTPS: u16 = 65;
/// Zone transfers (IXFR, AXFR), which are no lookups.
const TRANSFERS: [u16; 2] = [251, 252];
const ANY: u16 = 255;
const INTERNET: u16 = 1;

pub(crate) const SERVFAIL: u8 = 2;
const NXDOMAIN: u8 = 3;
const NOTIMP: u8 = 4;
pub(crate) const REFUSED: u8 = 5;
const FORMERR: u8 = 1;

/// Header flags, in the second pair of octets.
const RESPONSE: u8 = 0x80;
const TRUNCATED: u8 = 0x02;
const RECURSION_DESIRED: u8 = 0x01;
const RECURSION_AVAILABLE: u8 = 0x80;
const CHECKING_DISABLED: u8 = 0x10;
/// The flags AD and CD, which a response passes on.
const SECURITY: u8 = 0x30;
/// The flag DO of EDNS (RFC 4035, section 3).
const DNSSEC_OK: u8 = 0x80;
/// The option "Extended DNS Error" with the code "Stale Answer" (RFC 8914, section 4.4).
const STALE_ANSWER: [u8; 6] = [0, 15, 0, 2, 0, 3];

/// What is looked up, and the identity of a cached response.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Question {
    /// The name, type and class as in a message, with the name in lower case.
    octets: Box<[u8]>,
    /// The client requests signatures, or disables their check at the name server.
    dnssec_ok: bool,
    checking_disabled: bool,
}

impl Question {
    /// The type of the records.
    pub(crate) fn kind(&self) -> u16 {
        let at = self.octets.len() - 4;
        u16::from_be_bytes([self.octets[at], self.octets[at + 1]])
    }

    /// Whether the client checks signatures by itself.
    pub(crate) fn is_validated(&self) -> bool {
        self.dnssec_ok || self.checking_disabled
    }

    /// Returns the name as text without a final dot, if it is a host name.
    pub(crate) fn host(&self) -> Option<String> {
        let (mut text, mut at) = (String::new(), 0);
        while let Some(&length) = self.octets.get(at).filter(|&&length| length > 0) {
            let label = self.octets.get(at + 1..at + 1 + usize::from(length))?;
            let letter = |octet: &u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_');
            if !label.iter().all(letter) {
                return None;
            }
            if at > 0 {
                text.push('.');
            }
            text.push_str(str::from_utf8(label).ok()?);
            at += 1 + usize::from(length);
        }
        Some(text).filter(|text| !text.is_empty())
    }

    /// Returns the octets that it occupies in memory.
    pub(crate) fn size(&self) -> usize {
        self.octets.len()
    }

    /// Returns the query to the name servers, with the given `id`.
    pub(crate) fn query(&self, id: u16) -> Vec<u8> {
        let mut message = Vec::with_capacity(HEADER + self.octets.len() + 11);
        message.extend(id.to_be_bytes());
        let checking = if self.checking_disabled { CHECKING_DISABLED } else { 0 };
        message.extend([RECURSION_DESIRED, checking, 0, 1, 0, 0, 0, 0, 0, 1]);
        message.extend(&self.octets);
        opt(&mut message, self.dnssec_ok, false);
        message
    }
}

/// A client's query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) id: u16,
    pub(crate) question: Question,
    /// The question with the letters' case of the client, which some compare.
    asked: Box<[u8]>,
    recursion_desired: bool,
    /// Maximum size of a UDP response, if the client uses EDNS.
    edns: Option<u16>,
}

/// Why a client's message is not looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BadQuery {
    /// It is no query, so that a response could begin a loop.
    Ignored,
    /// It is answered by this response.
    Rejected(Vec<u8>),
}

impl Query {
    /// Reads a client's message.
    pub(crate) fn parse(message: &[u8]) -> Result<Self, BadQuery> {
        let Some(header) = message.first_chunk::<HEADER>() else { return Err(BadQuery::Ignored) };
        if header[2] & RESPONSE != 0 {
            return Err(BadQuery::Ignored);
        }
        let rejected = |rcode| BadQuery::Rejected(error_response(header, rcode));
        if header[2] & 0x78 != 0 {
            return Err(rejected(NOTIMP));
        }
        let counts = [4, 6, 8].map(|at| u16::from_be_bytes([header[at], header[at + 1]]));
        let end = question_end(message).filter(|_| counts == [1, 0, 0]);
        let end = end.ok_or_else(|| rejected(FORMERR))?;
        let asked: Box<[u8]> = message[HEADER..end].into();
        let opt = find_opt(message, end).map_err(|Malformed| rejected(FORMERR))?;
        let mut question = Question {
            octets: asked.to_ascii_lowercase().into(),
            dnssec_ok: opt.is_some_and(|opt| opt.dnssec_ok),
            checking_disabled: header[3] & CHECKING_DISABLED != 0,
        };
        let class = asked.last_chunk::<2>().map_or(0, |class| u16::from_be_bytes(*class));
        if class != INTERNET || TRANSFERS.contains(&question.kind()) {
            return Err(rejected(REFUSED));
        }
        // The type and class are no letters.
        let name = asked.len() - 4;
        question.octets[name..].copy_from_slice(&asked[name..]);
        Ok(Self {
            id: u16::from_be_bytes([header[0], header[1]]),
            question,
            asked,
            recursion_desired: header[2] & RECURSION_DESIRED != 0,
            edns: opt.map(|opt| opt.size),
        })
    }

    /// Returns the maximum size of a UDP response in octets.
    pub(crate) fn udp_size(&self) -> usize {
        self.edns.map_or(PLAIN_UDP, |size| size.clamp(PLAIN_UDP, MAX_UDP)).into()
    }

    /// Returns a response without records, by the code `rcode`.
    pub(crate) fn without_records(&self, rcode: u8) -> Vec<u8> {
        let head = [RESPONSE, RECURSION_AVAILABLE | rcode, 0, 1, 0, 0, 0, 0, 0, 0];
        let mut message = [&self.id.to_be_bytes()[..], &head, &self.asked].concat();
        self.finish(&mut message, false);
        message
    }

    /// Returns a response with one IPv4 address.
    pub(crate) fn with_address(&self, address: Ipv4Addr, ttl: Span) -> Vec<u8> {
        let head = [RESPONSE, RECURSION_AVAILABLE, 0, 1, 0, 1, 0, 0, 0, 0];
        let mut message = [&self.id.to_be_bytes()[..], &head, &self.asked].concat();
        // The owner is the name of the question, at offset 12.
        message.extend([0xc0, HEADER as u8, 0, A as u8, 0, INTERNET as u8]);
        message.extend(seconds(ttl).to_be_bytes());
        message.extend([0, 4]);
        message.extend(address.octets());
        self.finish(&mut message, false);
        message
    }

    /// Returns `response` for this client, of which `age` has passed; `stale`: it has expired, and
    /// all TTLs are this one. A response above `limit` octets is truncated to its question.
    pub(crate) fn with_response(
        &self,
        response: &Response,
        age: Span,
        stale: Option<Span>,
        limit: usize,
    ) -> Vec<u8> {
        let mut message = response.octets.clone();
        // The question of a valid response has the same length.
        message[HEADER..HEADER + self.asked.len()].copy_from_slice(&self.asked);
        let age = seconds(age);
        for &(at, ttl) in &response.ttls {
            let left = stale.map_or_else(|| ttl.saturating_sub(age), seconds);
            message[at..at + 4].copy_from_slice(&left.to_be_bytes());
        }
        message[..2].copy_from_slice(&self.id.to_be_bytes());
        self.finish(&mut message, stale.is_some());
        if message.len() > limit {
            message.truncate(HEADER + self.asked.len());
            message[2] |= TRUNCATED;
            message[6..HEADER].fill(0);
            self.finish(&mut message, false);
        }
        message
    }

    /// Sets the flags that repeat the client's, and appends an OPT record if the client uses EDNS.
    fn finish(&self, message: &mut Vec<u8>, stale: bool) {
        message[2] = message[2] & !RECURSION_DESIRED | u8::from(self.recursion_desired);
        if self.edns.is_some() {
            let count = u16::from_be_bytes([message[10], message[11]]).saturating_add(1);
            message[10..HEADER].copy_from_slice(&count.to_be_bytes());
            opt(message, self.question.dnssec_ok, stale);
        }
    }
}

/// A name server's response, as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Response {
    /// The message without its OPT record and what follows that.
    octets: Vec<u8>,
    /// Offsets and values of the TTLs, the latter in seconds.
    ttls: Vec<(usize, u32)>,
    /// Lifetime in the cache; zero: it is not stored.
    pub(crate) ttl: Span,
    /// The name server could not answer.
    pub(crate) is_failure: bool,
    /// There is no record of the requested type.
    pub(crate) is_negative: bool,
    /// The addresses of the answer.
    pub(crate) addresses: Vec<IpAddr>,
}

/// Why a name server's response is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl Response {
    /// Reads the response to `question` with `id`.
    ///
    /// # Errors
    /// If it is no well-formed response to it.
    pub(crate) fn parse(message: &[u8], question: &Question, id: u16) -> Result<Self, Malformed> {
        let header = message.first_chunk::<HEADER>().ok_or(Malformed)?;
        let end = question_end(message).ok_or(Malformed)?;
        let is_this = message[HEADER..end].eq_ignore_ascii_case(&question.octets)
            && message[end - 4..end] == question.octets[question.octets.len() - 4..];
        let flags = (header[2] & RESPONSE != 0, header[2] & 0x78, header[2] & TRUNCATED);
        if header[..2] != id.to_be_bytes()
            || header[4..6] != [0, 1]
            || flags != (true, 0, 0)
            || !is_this
        {
            return Err(Malformed);
        }
        let mut response = Self::default();
        let (mut end, mut extended, mut summary) = (end, 0, Summary::default());
        let mut kept = [0u16; 3];
        'sections: for (section, kept) in kept.iter_mut().enumerate() {
            let at = 6 + 2 * section;
            for _ in 0..u16::from_be_bytes([header[at], header[at + 1]]) {
                let record = Record::parse(message, end)?;
                if record.kind == OPT {
                    // The upper bits of the code are in the first octet of the TTL.
                    extended = record.ttl >> 24;
                    break 'sections;
                }
                summary.add(section, &record, question.kind());
                response.ttls.push((record.ttl_at, record.ttl));
                if section == 0 {
                    response.addresses.extend(record.address());
                }
                end = record.end;
                *kept += 1;
            }
        }
        response.octets = message[..end].to_vec();
        for (section, kept) in kept.iter().enumerate() {
            let at = 6 + 2 * section;
            response.octets[at..at + 2].copy_from_slice(&kept.to_be_bytes());
        }
        let rcode = header[3] & 0x0f;
        response.octets[2] = RESPONSE;
        response.octets[3] = RECURSION_AVAILABLE | header[3] & SECURITY | rcode;
        response.is_failure = extended != 0 || !matches!(rcode, 0 | NXDOMAIN);
        response.is_negative = !summary.is_found || rcode != 0;
        response.ttl = summary.ttl(response.is_negative);
        Ok(response)
    }

    /// The response to `question` where no name server has sent one.
    pub(crate) fn failure(question: &Question) -> Self {
        let head = [0, 0, RESPONSE, RECURSION_AVAILABLE | SERVFAIL, 0, 1, 0, 0, 0, 0, 0, 0];
        let octets = [&head[..], &question.octets].concat();
        Self { octets, is_failure: true, is_negative: true, ..Self::default() }
    }

    /// The octets that it occupies in memory.
    pub(crate) fn size(&self) -> usize {
        self.octets.len() + self.ttls.len() * size_of::<(usize, u32)>()
    }
}

/// What decides the lifetime of a response.
#[derive(Default)]
struct Summary {
    /// Minimum TTL of the answer section, in seconds.
    answers: Option<u32>,
    /// Lifetime of a negative answer by its SOA, in seconds.
    negative: Option<u32>,
    /// There is a record of the requested type.
    is_found: bool,
}

impl Summary {
    fn add(&mut self, section: usize, record: &Record<'_>, kind: u16) {
        match section {
            0 => {
                let least = self.answers.map_or(record.ttl, |ttl| ttl.min(record.ttl));
                self.answers = Some(least);
                self.is_found |= record.kind == kind || matches!(kind, ANY | CNAME);
            }
            1 if record.kind == SOA => {
                // The last field of SOA is the TTL of negative answers (RFC 2308, section 4).
                let least = record.data.last_chunk().map_or(0, |ttl| u32::from_be_bytes(*ttl));
                self.negative = Some(least.min(record.ttl));
            }
            _ => {}
        }
    }

    fn ttl(&self, is_negative: bool) -> Span {
        let seconds = match (is_negative, self.negative) {
            (false, _) => self.answers.unwrap_or(0),
            (true, Some(negative)) => self.answers.map_or(negative, |ttl| ttl.min(negative)),
            // RFC 2308, section 5: a negative answer without SOA is not stored.
            (true, None) => 0,
        };
        Span::from_secs(seconds.into())
    }
}

/// A resource record.
struct Record<'a> {
    kind: u16,
    class: u16,
    ttl_at: usize,
    ttl: u32,
    data: &'a [u8],
    end: usize,
}

impl<'a> Record<'a> {
    fn parse(message: &'a [u8], at: usize) -> Result<Self, Malformed> {
        let fixed = name_end(message, at).ok_or(Malformed)?;
        let head = message.get(fixed..).and_then(<[u8]>::first_chunk::<10>).ok_or(Malformed)?;
        let [kind, class, length] =
            [0, 2, 8].map(|at| u16::from_be_bytes([head[at], head[at + 1]]));
        let ttl = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
        let end = fixed + 10 + usize::from(length);
        let data = message.get(fixed + 10..end).ok_or(Malformed)?;
        // RFC 2181, section 8: a TTL with the first bit set is zero. OPT has other fields there.
        let ttl = if kind != OPT && ttl > i32::MAX as u32 { 0 } else { ttl };
        Ok(Self { kind, class, ttl_at: fixed + 4, ttl, data, end })
    }

    fn address(&self) -> Option<IpAddr> {
        match self.kind {
            A => Some(Ipv4Addr::from(<[u8; 4]>::try_from(self.data).ok()?).into()),
            AAAA => Some(Ipv6Addr::from(<[u8; 16]>::try_from(self.data).ok()?).into()),
            _ => None,
        }
    }
}

/// What the OPT record of a query has.
#[derive(Clone, Copy)]
struct Opt {
    size: u16,
    dnssec_ok: bool,
}

/// Finds the OPT record among the additional records, which begin at `at`.
fn find_opt(message: &[u8], mut at: usize) -> Result<Option<Opt>, Malformed> {
    let mut found = None;
    for _ in 0..u16::from_be_bytes([message[10], message[11]]) {
        let record = Record::parse(message, at)?;
        at = record.end;
        if record.kind == OPT {
            let dnssec_ok = record.ttl & u32::from(DNSSEC_OK) << 8 != 0;
            found = Some(Opt { size: record.class, dnssec_ok });
        }
    }
    Ok(found)
}

/// Appends an OPT record.
fn opt(message: &mut Vec<u8>, dnssec_ok: bool, stale: bool) {
    let options: &[u8] = if stale { &STALE_ANSWER } else { &[] };
    let [high, low] = MAX_UDP.to_be_bytes();
    let flag = if dnssec_ok { DNSSEC_OK } else { 0 };
    message.extend([0, 0, OPT as u8, high, low, 0, 0, flag, 0, 0, options.len() as u8]);
    message.extend(options);
}

/// Returns the end of the question, whose name is not compressed.
fn question_end(message: &[u8]) -> Option<usize> {
    let mut at = HEADER;
    loop {
        let length = usize::from(*message.get(at)?);
        at += 1 + length;
        if length > 63 || at - HEADER > MAX_NAME {
            return None;
        }
        if length == 0 {
            return Some(at + 4).filter(|&end| end <= message.len());
        }
    }
}

/// Returns the end of a name, which may end in a pointer.
fn name_end(message: &[u8], mut at: usize) -> Option<usize> {
    let begin = at;
    loop {
        match *message.get(at)? {
            0 => return Some(at + 1),
            length @ 1..=63 => at += 1 + usize::from(length),
            192.. => return Some(at + 2),
            64..192 => return None,
        }
        if at - begin > MAX_NAME {
            return None;
        }
    }
}

/// Returns the response without a question to a message that could not be read.
fn error_response(header: &[u8; HEADER], rcode: u8) -> Vec<u8> {
    let flags = RESPONSE | header[2] & 0x79;
    vec![header[0], header[1], flags, RECURSION_AVAILABLE | rcode, 0, 0, 0, 0, 0, 0, 0, 0]
}

fn seconds(span: Span) -> u32 {
    u32::try_from(span.as_nanos() / 1_000_000_000).unwrap_or(u32::MAX)
}
