//! Deprecated names of metrics, labels and JSON fields, which are written in addition to the
//! present ones until version 0.3.

use serde::Serialize;
use serde_json::Value;

/// Deprecated and present names of metrics.
pub(super) const METRICS: &[(&str, &str)] = &[
    ("bentpipe_association_withheld_total", "bentpipe_association_suppressed_total"),
    ("bentpipe_direct_total", "bentpipe_direct_connections_total"),
    ("bentpipe_knocks_gone_total", "bentpipe_syns_abandoned_total"),
    ("bentpipe_knocks_overrun_total", "bentpipe_syn_log_overruns_total"),
    ("bentpipe_knocks_total", "bentpipe_syns_held_total"),
    ("bentpipe_loop_busy_seconds", "bentpipe_loop_iteration_seconds"),
    ("bentpipe_loop_late_seconds", "bentpipe_loop_wakeup_latency_seconds"),
    ("bentpipe_mac_unheard_total", "bentpipe_mac_send_errors_total"),
    ("bentpipe_mtu_falls_total", "bentpipe_mtu_reductions_total"),
    ("bentpipe_own_address_instead_total", "bentpipe_source_fallbacks_total"),
    ("bentpipe_passes_total", "bentpipe_bypass_activations_total"),
    ("bentpipe_passing", "bentpipe_bypass_active"),
    ("bentpipe_satellite_repeated_bytes_total", "bentpipe_satellite_retransmitted_bytes_total"),
    ("bentpipe_shares_used_up_total", "bentpipe_quota_refusals_total"),
    ("bentpipe_terminal_beyond_grant_total", "bentpipe_terminal_grant_overuse_total"),
    (
        "bentpipe_terminal_found_rate_bytes_per_second",
        "bentpipe_terminal_confirmed_rate_bytes_per_second",
    ),
    ("bentpipe_terminal_last_heard_time_seconds", "bentpipe_terminal_last_received_time_seconds"),
    ("bentpipe_terminal_least_round_trip_seconds", "bentpipe_terminal_min_round_trip_seconds"),
    ("bentpipe_terminal_queue_seconds", "bentpipe_terminal_queuing_delay_seconds"),
    ("bentpipe_terminal_receive_promised_bytes", "bentpipe_terminal_receive_credit_bytes"),
    ("bentpipe_terminal_waiting_again_packets", "bentpipe_terminal_retransmit_queue_packets"),
    ("bentpipe_terminal_well", "bentpipe_terminal_path_up"),
    ("bentpipe_waiting", "bentpipe_missing_addresses"),
];

/// Deprecated and present names of labels.
pub(super) const LABELS: &[(&str, &str)] =
    &[("fate", "result"), ("how", "cause"), ("way", "direction")];

/// Deprecated and present names of fields of reports and of the control socket's responses.
const FIELDS: &[(&str, &str)] = &[
    ("beyond_grant", "grant_overuse"),
    ("bytes_repeated", "bytes_retransmitted"),
    ("gone_before_accepted", "syns_abandoned"),
    ("heard_unix_seconds", "last_received_unix_seconds"),
    ("knocked", "syns_held"),
    ("knocks_lost", "syn_log_overruns"),
    ("learnt_bits_per_second", "confirmed_rate_bits_per_second"),
    ("least_round_trip_seconds", "min_round_trip_seconds"),
    ("mac_unheard", "mac_send_errors"),
    ("most_at_once", "peak_connections"),
    ("most_bits_per_second", "max_bits_per_second"),
    ("most_descriptors", "max_descriptors"),
    ("own_address_instead", "source_fallbacks"),
    ("passed", "bypass_activations"),
    ("passing", "bypass_active"),
    ("promised", "commitments"),
    ("queue_seconds", "queuing_delay_seconds"),
    ("receive_promised_bytes", "receive_credit_bytes"),
    ("segments_repeated", "segments_retransmitted"),
    ("silent_seconds", "idle_seconds"),
    ("waiting_again", "retransmit_queue_packets"),
    ("way", "direction"),
];

/// Returns the deprecated name of `name` in `names`, if there is one.
pub(super) fn former(names: &[(&'static str, &str)], name: &str) -> Option<&'static str> {
    names.iter().find(|(_, present)| *present == name).map(|(former, _)| *former)
}

/// Returns `value` as JSON, each field also under its deprecated name.
///
/// # Errors
/// If `value` has a map whose keys are not strings.
pub fn to_json(value: &impl Serialize) -> serde_json::Result<Value> {
    let mut json = serde_json::to_value(value)?;
    add_former(&mut json);
    Ok(json)
}

fn add_former(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(add_former);
            for (former, present) in FIELDS {
                if let Some(value) = fields.get(*present).cloned() {
                    fields.insert((*former).to_owned(), value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(add_former),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_have_both_names() {
        let value = json!({"open": 1, "terminals": [{"idle_seconds": 2.5}], "commitments": []});
        let expected = json!({
            "open": 1,
            "terminals": [{"idle_seconds": 2.5, "silent_seconds": 2.5}],
            "commitments": [],
            "promised": [],
        });
        assert_eq!(to_json(&value).unwrap(), expected);
    }
}
