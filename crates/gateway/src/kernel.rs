//! Features of this host's kernel.

/// Returns the names of the congestion controls that the kernel has loaded.
pub(crate) fn available_congestion_controls() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    text.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}
