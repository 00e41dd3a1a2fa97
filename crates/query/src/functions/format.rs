//! Numbers as MySQL prints them.

/// A DOUBLE: the shortest text that reads back as the same value.
#[must_use]
pub fn double(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || (1e-5..1e15).contains(&size) || !value.is_finite() {
        format!("{value}")
    } else {
        format!("{value:e}")
    }
}

/// A FLOAT: the shortest text that reads back as the same value.
#[must_use]
pub fn float(value: f32) -> String {
    let size = value.abs();
    if value == 0.0 || (1e-5..1e15).contains(&size) || !value.is_finite() {
        format!("{value}")
    } else {
        format!("{value:e}")
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn whole_doubles_have_no_fraction_and_large_ones_an_exponent() {
        assert_eq!(super::double(1.0), "1");
        assert_eq!(super::double(0.1), "0.1");
        assert_eq!(super::double(1e20), "1e20");
        assert_eq!(super::float(1.5), "1.5");
    }
}
