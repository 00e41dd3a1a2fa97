//! Environment variables that look like settings but come from a container platform.
//!
//! A platform describes the services around a container: a service called `tributary` results in `TRIBUTARY_SERVICE_HOST`,
//! `TRIBUTARY_PORT=tcp://…` and more, one called `tributary-http` in `TRIBUTARY_HTTP_PORT=tcp://…`, which is also the name of a
//! setting. They are recognised by name and value together.

use std::net::IpAddr;

/// Whether the platform set the variable `TRIBUTARY_<name>`.
pub(super) fn is_injected(name: &str, value: &str) -> bool {
    // The part after the service's name, which may be longer than `tributary`.
    let starts = std::iter::once(0).chain(name.match_indices('_').map(|(at, _)| at + 1));
    starts.map(|start| &name[start..]).any(|tail| is_service_variable(tail, value))
}

fn is_service_variable(tail: &str, value: &str) -> bool {
    match tail {
        "SERVICE_HOST" => return value.parse::<IpAddr>().is_ok(),
        "SERVICE_PORT" => return is_port(value),
        "PORT" => return is_url(value),
        _ => {}
    }
    if tail.strip_prefix("SERVICE_PORT_").is_some_and(|name| !name.is_empty()) {
        return is_port(value);
    }
    let Some((port, rest)) = tail.strip_prefix("PORT_").and_then(|rest| rest.split_once('_')) else {
        return false;
    };
    let (protocol, field) = rest.split_once('_').unwrap_or((rest, ""));
    is_port(port)
        && matches!(protocol, "TCP" | "UDP" | "SCTP")
        && match field {
            "" => is_url(value),
            "PORT" => is_port(value),
            "PROTO" => value.eq_ignore_ascii_case(protocol),
            "ADDR" => value.parse::<IpAddr>().is_ok(),
            _ => false,
        }
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok()
}

fn is_url(text: &str) -> bool {
    ["tcp://", "udp://", "sctp://"].iter().any(|scheme| text.starts_with(scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_platforms_tell_about_services_is_known_by_name_and_value() {
        for (name, value) in [
            ("SERVICE_HOST", "10.0.0.11"),
            ("SERVICE_HOST", "fd00::1"),
            ("SERVICE_PORT", "9030"),
            ("SERVICE_PORT_MYSQL", "9030"),
            ("SERVICE_PORT_HTTP_ALT", "8040"),
            ("PORT", "tcp://10.0.0.11:9030"),
            ("PORT_9030_TCP", "tcp://10.0.0.11:9030"),
            ("PORT_9030_TCP_ADDR", "10.0.0.11"),
            ("PORT_9030_TCP_PORT", "9030"),
            ("PORT_9030_TCP_PROTO", "tcp"),
            ("HTTP_SERVICE_HOST", "10.0.0.12"),
            ("HTTP_PORT", "tcp://10.0.0.12:8030"),
            ("QUERY_PORT_9030_TCP", "tcp://10.0.0.12:9030"),
        ] {
            assert!(is_injected(name, value), "{name}={value}");
        }
    }

    #[test]
    fn settings_and_misspelt_ones_are_not_taken_for_a_platforms() {
        for (name, value) in [
            ("HTTP_PORT", "8030"),
            ("PORT", "9030"),
            ("SERVICE_HOST", "localhost"),
            ("PORT_HTTP_TCP", "tcp://10.0.0.11:9030"),
            ("PORT_9030_TCP_NAME", "x"),
            ("SUPPORT", "tcp://10.0.0.11:9030"),
            ("STORAGE_ROOT", "/data"),
            ("", ""),
        ] {
            assert!(!is_injected(name, value), "{name}={value}");
        }
    }
}
