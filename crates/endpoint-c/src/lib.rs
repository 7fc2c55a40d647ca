//! The functions of `include/bentpipe.h`, which documents them.
//!
//! A pointer that C passes is NULL or one that these functions returned and did not free.

use endpoint::{
    Endpoint, KeyTextError, PrivateKey, PublicKey, Stream, SystemEntropy, Target, config,
};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, ToSocketAddrs};
use std::slice;
use std::str::FromStr;
use std::time::Duration;

/// Length of a key's text with its NUL.
const KEY_TEXT: usize = 45;

thread_local! {
    static ERROR: RefCell<CString> = RefCell::new(CString::default());
}

type Outcome<T> = Result<T, String>;

/// Stores the reason of a failure.
fn fail(reason: &str) {
    let text = CString::new(reason.replace('\0', "\u{fffd}")).unwrap_or_default();
    ERROR.with(|error| *error.borrow_mut() = text);
}

fn pointer<T>(result: Outcome<T>) -> *mut T {
    match result {
        Ok(value) => Box::into_raw(Box::new(value)),
        Err(reason) => {
            fail(&reason);
            std::ptr::null_mut()
        }
    }
}

fn status(result: Outcome<usize>) -> isize {
    match result {
        Ok(value) => value as isize,
        Err(reason) => {
            fail(&reason);
            -1
        }
    }
}

/// # Safety
/// `text` is NULL or a string that ends with NUL.
unsafe fn text<'a>(text: *const c_char, name: &str) -> Outcome<&'a str> {
    if text.is_null() {
        return Err(format!("{name} is NULL"));
    }
    // SAFETY: the caller's condition.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| format!("{name} is not UTF-8"))
}

/// # Safety
/// `pointer` is NULL or valid.
unsafe fn object<'a, T>(pointer: *const T, name: &str) -> Outcome<&'a T> {
    // SAFETY: the caller's condition.
    unsafe { pointer.as_ref() }.ok_or_else(|| format!("{name} is NULL"))
}

fn resolve(address: &str) -> Outcome<SocketAddr> {
    let mut found = address.to_socket_addrs().map_err(|error| format!("{address}: {error}"))?;
    found.next().ok_or_else(|| format!("{address}: no address"))
}

/// Returns a private or public key.
fn key<T: FromStr<Err = KeyTextError>>(text: &str) -> Outcome<T> {
    text.parse().map_err(|error: KeyTextError| error.to_string())
}

/// # Safety
/// Both buffers have 45 octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bp_generate_key(private_key: *mut c_char, public_key: *mut c_char) {
    let key = PrivateKey::generate(&mut SystemEntropy);
    for (text, to) in [(key.to_text(), private_key), (key.public().to_string(), public_key)] {
        assert!(text.len() == KEY_TEXT - 1, "a key has 44 characters");
        // SAFETY: the caller's condition, and the length of the text.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr().cast(), to, text.len());
            *to.add(text.len()) = 0;
        }
    }
}

/// # Safety
/// The texts are NULL or end with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bp_connect(
    address: *const c_char,
    private_key: *const c_char,
    server_key: *const c_char,
) -> *mut Endpoint {
    let open = || {
        // SAFETY: the caller's condition.
        let (address, private, server) = unsafe {
            (
                text(address, "address")?,
                text(private_key, "private_key")?,
                text(server_key, "server_key")?,
            )
        };
        let private: PrivateKey = key(private)?;
        let config = config(&private, &[key(server)?]).map_err(|error| error.to_string())?;
        Endpoint::client(&config, resolve(address)?).map_err(|error| error.to_string())
    };
    pointer(open())
}

/// # Safety
/// The texts are NULL or end with NUL, and `client_keys` has `count` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bp_listen(
    address: *const c_char,
    private_key: *const c_char,
    client_keys: *const *const c_char,
    count: usize,
) -> *mut Endpoint {
    let open = || {
        if client_keys.is_null() && count > 0 {
            return Err("client_keys is NULL".to_owned());
        }
        let keys: &[*const c_char] = match count {
            0 => &[],
            // SAFETY: the caller's condition.
            _ => unsafe { slice::from_raw_parts(client_keys, count) },
        };
        // SAFETY: the caller's condition.
        let known = keys.iter().map(|&one| key(unsafe { text(one, "client_keys") }?));
        let known = known.collect::<Outcome<Vec<PublicKey>>>()?;
        // SAFETY: the caller's condition.
        let (address, private) =
            unsafe { (text(address, "address")?, text(private_key, "private_key")?) };
        let private: PrivateKey = key(private)?;
        let config = config(&private, &known).map_err(|error| error.to_string())?;
        Endpoint::server(&config, resolve(address)?).map_err(|error| error.to_string())
    };
    pointer(open())
}

/// # Safety
/// `endpoint` is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bp_port(endpoint: *const Endpoint) -> u16 {
    // SAFETY: the caller's condition.
    unsafe { object(endpoint, "endpoint") }.map_or(0, |endpoint| endpoint.local_address().port())
}

/// # Safety
/// `endpoint` is NULL or valid, and `host` is NULL or ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bp_open(
    endpoint: *const Endpoint,
    host: *const c_char,
    port: u16,
) -> *mut Stream {
    let open = || {
        // SAFETY: the caller's condition.
        let (endpoint, host) = unsafe { (object(endpoint, "endpoint")?, text(host, "host")?) };
        let target = match host.parse() {
            Ok(address) => Target::address(SocketAddr::new(address, port)),
            Err(_) => Target::name(host, port),
        };
        endpoint.open(target).map_err(|error| error.to_string())
    };
    pointer(open())
}

/// # Safety
/// `endpoint` is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bp_accept(endpoint: *const Endpoint, milliseconds: i64) -> *mut Stream {
    let accept = || {
        // SAFETY: the caller's condition.
        let endpoint = unsafe { object(endpoint, "endpoint") }?;
        let accepted = match u64::try_from(milliseconds) {
            Ok(limit) => endpoint.accept_for(Duration::from_millis(limit)),
            Err(_) => endpoint.accept(),
        };
        accepted.map(|accepted| accepted.stream).map_err(|error| error.to_string())
    };
    pointer(accept())
}

/// # Safety
/// `stream` is NULL or valid, and `buffer` has `len` octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bp_read(stream: *const Stream, buffer: *mut c_void, len: usize) -> isize {
    let read = || {
        // SAFETY: the caller's condition.
        let mut stream = unsafe { object(stream, "stream") }?;
        if buffer.is_null() || len == 0 {
            return Err("the buffer is empty".to_owned());
        }
        // SAFETY: the caller's condition; a slice has at most isize::MAX octets.
        let buffer =
            unsafe { slice::from_raw_parts_mut(buffer.cast::<u8>(), len.min(isize::MAX as usize)) };
        stream.read(buffer).map_err(|error| error.to_string())
    };
    status(read())
}

/// # Safety
/// `stream` is NULL or valid, and `data` has `len` octets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bp_write(stream: *const Stream, data: *const c_void, len: usize) -> isize {
    let write = || {
        // SAFETY: the caller's condition.
        let mut stream = unsafe { object(stream, "stream") }?;
        if data.is_null() || len == 0 {
            return Err("there is no data".to_owned());
        }
        // SAFETY: the caller's condition; a slice has at most isize::MAX octets.
        let data =
            unsafe { slice::from_raw_parts(data.cast::<u8>(), len.min(isize::MAX as usize)) };
        stream.write(data).map_err(|error| error.to_string())
    };
    status(write())
}

/// # Safety
/// `stream` is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bp_finish(stream: *const Stream) -> c_int {
    // SAFETY: the caller's condition.
    let stream = unsafe { object(stream, "stream") };
    let finish = stream
        .and_then(|stream| stream.shutdown(Shutdown::Write).map_err(|error| error.to_string()));
    status(finish.map(|()| 0)) as c_int
}

/// # Safety
/// `stream` is NULL or valid; it is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bp_stream_free(stream: *mut Stream) {
    if !stream.is_null() {
        // SAFETY: the caller's condition.
        drop(unsafe { Box::from_raw(stream) });
    }
}

/// # Safety
/// `endpoint` is NULL or valid; it is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bp_endpoint_free(endpoint: *mut Endpoint, milliseconds: i64) -> c_int {
    if endpoint.is_null() {
        return 0;
    }
    // SAFETY: the caller's condition.
    let endpoint = unsafe { Box::from_raw(endpoint) };
    let limit = Duration::from_millis(u64::try_from(milliseconds).unwrap_or_default());
    status(endpoint.close(limit).map(|()| 0).map_err(|error| error.to_string())) as c_int
}

/// Returns a text that is valid until the thread's next failure.
#[unsafe(no_mangle)]
pub extern "C" fn bp_error() -> *const c_char {
    ERROR.with(|error| error.borrow().as_ptr())
}
