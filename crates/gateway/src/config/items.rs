//! Readers of values that several sections have.

use super::reader::{Item, Reader};
use super::values;
use crate::intercept::{PortRange, Prefix};
use units::Span;

pub(super) fn positive_span(reader: &mut Reader<'_>, item: Item<'_>, most: Span) -> Option<Span> {
    let expected = format!("{} above zero and at most {most}", values::SPAN);
    item.parsed(reader, &expected, |text| {
        values::span(text).filter(|&span| !span.is_zero() && span <= most)
    })
}

/// Reads a time in whole seconds, the kernel's unit for it.
pub(super) fn whole_seconds(reader: &mut Reader<'_>, item: Item<'_>) -> Option<Span> {
    let expected = "a length of time from \"1s\" to \"9h\"";
    item.parsed(reader, expected, values::whole_seconds)
}

pub(super) fn interface(reader: &mut Reader<'_>, item: Item<'_>) -> Option<String> {
    item.parsed(reader, "an interface's name, such as \"eth0\"", |text| {
        // The kernel permits 15 bytes without slash and space. A star at the end matches any
        // suffix.
        let stem = text.strip_suffix('*').unwrap_or(text);
        let fits = (1..=15).contains(&stem.len())
            && stem.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/');
        fits.then(|| text.to_owned())
    })
}

pub(super) fn ports(reader: &mut Reader<'_>, item: Item<'_>) -> Option<PortRange> {
    item.text(reader, values::PORTS, |text| text.parse().ok())
}

pub(super) fn network(reader: &mut Reader<'_>, item: Item<'_>) -> Option<Prefix> {
    item.parsed(reader, values::NETWORK, |text| text.parse().ok())
}

pub(super) fn name(reader: &mut Reader<'_>, item: Item<'_>) -> Option<String> {
    item.parsed(reader, "a name of 1 to 64 bytes without control characters", |text| {
        let fits = (1..=64).contains(&text.len()) && !text.chars().any(char::is_control);
        fits.then(|| text.to_owned())
    })
}

pub(super) fn id(reader: &mut Reader<'_>, item: Item<'_>) -> Option<String> {
    item.parsed(reader, "1 to 32 letters, digits and underscores", |text| {
        let fits = (1..=32).contains(&text.len())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        fits.then(|| text.to_owned())
    })
}
