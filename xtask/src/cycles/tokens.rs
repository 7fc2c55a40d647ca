//! Rust source as tokens: identifiers and punctuation, without comments and literals.

/// Splits `text` into identifiers, `::`, and single characters of punctuation. Comments, literals
/// and lifetimes are left out.
pub(super) fn tokens(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        let rest = &text[at..];
        let skipped = comment(rest).or_else(|| literal(rest));
        if let Some(length) = skipped {
            at += length;
            continue;
        }
        let length = if is_word(next) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            next.len_utf8()
        };
        if !next.is_whitespace() && !next.is_ascii_digit() {
            found.push(&rest[..length]);
        }
        at += length;
    }
    found
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// The length of the comment that `rest` begins with.
fn comment(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if !rest.starts_with("/*") {
        return None;
    }
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
        } else {
            at += 1;
        }
        if depth == 0 {
            return Some(at);
        }
    }
    Some(rest.len())
}

/// The length of the string, character or lifetime that `rest` begins with.
fn literal(rest: &str) -> Option<usize> {
    let byte = usize::from(rest.starts_with("b'"));
    if let Some(after) = rest[byte..].strip_prefix('\'') {
        return Some(byte + 1 + character_or_lifetime(after));
    }
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        let after = rest.strip_prefix(prefix).unwrap_or_default();
        let hashes = after.trim_start_matches('#');
        hashes.starts_with('"') && (prefix.ends_with('r') || hashes.len() == after.len())
    })?;
    let after = &rest[prefix.len()..];
    let hashes = after.len() - after.trim_start_matches('#').len();
    let start = prefix.len() + hashes + 1;
    if prefix.ends_with('r') {
        let end = format!("\"{}", "#".repeat(hashes));
        return Some(rest[start..].find(&end).map_or(rest.len(), |at| start + at + end.len()));
    }
    let mut escaped = false;
    for (at, c) in rest[start..].char_indices() {
        match c {
            '"' if !escaped => return Some(start + at + 1),
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    Some(rest.len())
}

/// The length of what follows a single quotation mark: a character with its closing mark, or the
/// name of a lifetime.
fn character_or_lifetime(after: &str) -> usize {
    let mut chars = after.char_indices();
    match chars.next() {
        Some((_, '\\')) => {
            let escaped = after.chars().nth(1).map_or(0, char::len_utf8);
            let from = 1 + escaped;
            after[from..].find('\'').map_or(after.len(), |at| from + at + 1)
        }
        Some(_) if matches!(chars.next(), Some((_, '\''))) => {
            after.find('\'').map_or(after.len(), |at| at + 1)
        }
        Some(_) => after.find(|c| !is_word(c)).unwrap_or(after.len()),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_literals_and_lifetimes_are_left_out() {
        let text = r##"use a::b; // c::d
/* e /* f */ g */ let x: &'a str = "h\" i"; let c = ('\'', '{', b'"');
let raw = r#"j " k"#; fn l<'m>() { n::o(1_000u64) }"##;
        let words: Vec<&str> = tokens(text).into_iter().filter(|t| t.len() > 1).collect();
        assert_eq!(words, ["use", "::", "let", "str", "let", "let", "raw", "fn", "::"]);
        let one: String = tokens(text).into_iter().filter(|t| t.len() == 1).collect();
        assert_eq!(one, "ab;x:&=;c=(,,);=;l<>(){no()}");
    }

    #[test]
    fn text_that_ends_within_a_literal_or_comment_is_read_to_its_end() {
        for text in ["\"a", "/* a", "r#\"a", "'", "'\\", "b\"\\"] {
            assert!(tokens(text).is_empty(), "{text:?}: {:?}", tokens(text));
        }
    }
}
