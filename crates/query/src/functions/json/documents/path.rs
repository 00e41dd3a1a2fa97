//! JSON paths: `$.a[0]."b c"`, `$.*`, `$[*]`, `$[last-1]`, `$**.a`.

use serde_json::Value;

/// A path, step by step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Member(String),
    AnyMember,
    Element(usize),
    /// Elements counted back from the last.
    FromLast(usize),
    AnyElement,
    /// The value itself and everything in it.
    Within,
}

impl Path {
    /// Reads a path; `None` for an invalid one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        let mut rest = text.trim().strip_prefix('$')?;
        while !rest.is_empty() {
            rest = rest.trim_start();
            if let Some(after) = rest.strip_prefix("**") {
                steps.push(Step::Within);
                rest = after;
            } else if let Some(inner) = rest.strip_prefix("[").or_else(|| rest.strip_prefix(".[")) {
                let (index, after) = inner.split_once(']')?;
                steps.push(element(index.trim())?);
                rest = after;
            } else {
                let (step, after) = member(rest.strip_prefix('.')?.trim_start())?;
                steps.push(step);
                rest = after;
            }
        }
        // A path that ends with `**` leads nowhere.
        (steps.last() != Some(&Step::Within)).then_some(Self { steps })
    }

    /// Whether it may lead to more than one value.
    #[must_use]
    pub fn is_plural(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::AnyMember | Step::AnyElement | Step::Within))
    }

    /// The values that it leads to.
    #[must_use]
    pub fn find<'a>(&self, document: &'a Value) -> Vec<&'a Value> {
        let mut here = vec![document];
        for step in &self.steps {
            let mut next: Vec<&'a Value> = Vec::new();
            for value in here {
                step.take(value, &mut next);
            }
            here = next;
        }
        here
    }

    /// The first value that it leads to.
    #[must_use]
    pub fn first<'a>(&self, document: &'a Value) -> Option<&'a Value> {
        self.find(document).into_iter().next()
    }
}

impl Path {
    /// Puts a value in the place of the one that the path leads to, if `replaces`, or there where the path leads past an object
    /// or array, if `inserts`. The path must lead to one value at most.
    pub fn set(&self, document: &mut Value, value: Value, inserts: bool, replaces: bool) {
        let Some((last, steps)) = self.steps.split_last() else {
            if replaces {
                *document = value;
            }
            return;
        };
        let Some(parent) = steps.iter().try_fold(document, |value, step| step.go(value)) else { return };
        if let Some(found) = last.go(parent) {
            if replaces {
                *found = value;
            }
            return;
        }
        match (last, parent) {
            (Step::Member(name), Value::Object(members)) if inserts => {
                members.insert(name.clone(), value);
            }
            (Step::Element(_), Value::Array(items)) if inserts => items.push(value),
            // A value counts as an array of itself.
            (Step::Element(_), single) if inserts => *single = Value::Array(vec![single.take(), value]),
            _ => {}
        }
    }

    /// Removes the value that the path leads to; the whole document cannot be removed.
    pub fn remove(&self, document: &mut Value) {
        let Some((last, steps)) = self.steps.split_last() else { return };
        let Some(parent) = steps.iter().try_fold(document, |value, step| step.go(value)) else { return };
        match (last, parent) {
            (Step::Member(name), Value::Object(members)) => {
                members.shift_remove(name);
            }
            (Step::Element(at), Value::Array(items)) if *at < items.len() => {
                items.remove(*at);
            }
            (Step::FromLast(before), Value::Array(items)) if *before < items.len() => {
                items.remove(items.len() - before - 1);
            }
            _ => {}
        }
    }
}

impl Step {
    /// The one value that the step leads to.
    fn go<'a>(&self, value: &'a mut Value) -> Option<&'a mut Value> {
        match (self, value) {
            (Self::Member(name), Value::Object(members)) => members.get_mut(name),
            (Self::Element(at), Value::Array(items)) => items.get_mut(*at),
            (Self::FromLast(before), Value::Array(items)) => {
                let at = items.len().checked_sub(before + 1)?;
                items.get_mut(at)
            }
            (
                Self::Element(0) | Self::FromLast(0),
                single @ (Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Object(_)),
            ) => Some(single),
            _ => None,
        }
    }

    fn take<'a>(&self, value: &'a Value, out: &mut Vec<&'a Value>) {
        match (self, value) {
            (Self::Member(name), Value::Object(members)) => out.extend(members.get(name)),
            (Self::AnyMember, Value::Object(members)) => out.extend(members.values()),
            (Self::Element(at), Value::Array(items)) => out.extend(items.get(*at)),
            (Self::FromLast(before), Value::Array(items)) => {
                out.extend(items.len().checked_sub(before + 1).and_then(|at| items.get(at)));
            }
            // An object counts as an array of itself.
            (Self::Element(0) | Self::FromLast(0), Value::Object(_)) => out.push(value),
            (Self::AnyElement, Value::Array(items)) => out.extend(items),
            (Self::Within, value) => within(value, out),
            _ => {}
        }
    }
}

fn within<'a>(value: &'a Value, out: &mut Vec<&'a Value>) {
    out.push(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| within(item, out)),
        Value::Object(members) => members.values().for_each(|member| within(member, out)),
        _ => {}
    }
}

fn element(index: &str) -> Option<Step> {
    if index == "*" {
        return Some(Step::AnyElement);
    }
    let Some(rest) = index.strip_prefix("last") else { return index.parse().ok().map(Step::Element) };
    match rest.trim() {
        "" => Some(Step::FromLast(0)),
        rest => rest.strip_prefix('-')?.trim().parse().ok().map(Step::FromLast),
    }
}

/// The leading member of a path, quoted or plain, and the rest.
fn member(path: &str) -> Option<(Step, &str)> {
    if let Some(after) = path.strip_prefix('*') {
        return Some((Step::AnyMember, after));
    }
    let (name, after) = match path.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?,
        None => {
            let end = path.find(['.', '[', '*']).unwrap_or(path.len());
            if end == 0 {
                return None;
            }
            let (name, after) = path.split_at(end);
            (name.trim_end(), after)
        }
    };
    Some((Step::Member(name.to_owned()), after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(document: &Value, path: &str) -> String {
        let values = Path::parse(path).unwrap().find(document);
        values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn paths_lead_to_members_and_elements() {
        let document = json!({"a": [1, {"b c": "x", "k": 2}], "n": null, "k": 3});
        for (path, expected) in [
            ("$.a[0]", "1"),
            ("$.a[1].\"b c\"", "\"x\""),
            ("$ . a [ 1 ] . k", "2"),
            ("$.[0].k", "3"),
            ("$.n", "null"),
            ("$.a[last]", "{\"b c\":\"x\",\"k\":2}"),
            ("$.a[last - 1]", "1"),
            ("$.a[*].k", "2"),
            ("$.a[1].*", "\"x\" 2"),
            ("$**.k", "3 2"),
            ("$.n[0]", ""),
            ("$.b", ""),
            ("$.a[9]", ""),
            ("$.a[last-2]", ""),
            ("$.a.k", ""),
        ] {
            assert_eq!(found(&document, path), expected, "{path}");
        }
    }

    #[test]
    fn texts_that_are_no_paths_are_refused() {
        for text in ["", "a", "$.", "$[", "$.a[x]", "$[-1]", "$[last+1]", "$..a", "$**", "$.\"a", "a.$"] {
            assert_eq!(Path::parse(text), None, "{text}");
        }
    }
}
