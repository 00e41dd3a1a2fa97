//! The info text of an answer, which in Doris has a load's label, status and transaction.

use super::LoadDetails;
use std::time::Duration;
use tributary_types::{GroupCommitMode, Label, TxnId};

/// The contents of a load's info text.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoadInfo<'a> {
    pub label: Option<&'a Label>,
    /// `PREPARE` for a load of a group and within BEGIN, else `VISIBLE`.
    pub status: &'static str,
    pub txn: Option<TxnId>,
    pub error_url: Option<&'a str>,
    /// Why the client did not get the requested Group Commit mode.
    pub remark: Option<&'static str>,
    /// The plan of a prepared statement was used again.
    pub reused_plan: bool,
    /// It was loaded before, and this is the answer of then.
    pub is_repeated: bool,
    /// Shown by sessions with `show_load_details`.
    pub details: Option<ShownDetails>,
}

/// The details of a load's answer, for sessions that show them.
#[derive(Clone, Debug)]
pub(crate) struct ShownDetails {
    /// The mode in which the load was answered.
    pub mode: GroupCommitMode,
    pub details: LoadDetails,
    /// From the statement's arrival to its answer.
    pub took: Duration,
}

impl LoadDetails {
    /// The stages of a load that `took` this long, in order and by name; the first is the rest of the time, which preceded the load:
    /// parsing, planning, decoding.
    pub fn stages(&self, took: Duration) -> [(&'static str, Duration); 7] {
        let Self { write, stages, .. } = *self;
        [
            ("decode", took.saturating_sub(write + stages.total())),
            ("write", write),
            ("admit", stages.admit),
            ("wait", stages.wait),
            ("build", stages.build),
            ("log", stages.log),
            ("publish", stages.publish),
        ]
    }
}

impl LoadInfo<'_> {
    /// `{'label':'…', 'status':'…', 'txnId':'…'}` with the keys that apply after it.
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(192);
        for part in
            ["{'label':'", self.label.map_or("", Label::as_str), "', 'status':'", self.status, "', 'txnId':'"]
        {
            text.push_str(part);
        }
        if let Some(txn) = self.txn {
            text.push_str(itoa::Buffer::new().format(txn.0));
        }
        text.push('\'');
        let mut add = |key: &str, value: &str| {
            text.push_str(", '");
            text.push_str(key);
            text.push_str("':'");
            text.push_str(value);
            text.push('\'');
        };
        if let Some(url) = self.error_url {
            add("err_url", url);
        }
        if self.reused_plan {
            add("reuse_group_commit_plan", "true");
        }
        if let Some(remark) = self.remark {
            add("group_commit_fallback", remark);
        }
        if self.is_repeated {
            add("repeated", "true");
        }
        if let Some(details) = &self.details {
            add("mode", details.mode.as_str());
            if let Some(reason) = details.details.closed_by {
                add("closed_by", reason.name());
            }
            if let Some(at) = details.details.visible_by() {
                add("visible_by", &at);
            }
            let stages = details.details.stages(details.took).into_iter().chain([("total", details.took)]);
            let stages: Vec<_> = stages.map(|(name, time)| format!("{name}={}", time.as_micros())).collect();
            add("stages_us", &stages.join(", "));
        }
        text.push('}');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_the_blanks_and_quotes_that_clients_parse() {
        let label = Label::of_group(1);
        let info =
            LoadInfo { label: Some(&label), status: "PREPARE", txn: Some(TxnId(7)), ..LoadInfo::default() };
        assert_eq!(
            info.text(),
            "{'label':'group_commit_0000000000000000_0000000000000001', 'status':'PREPARE', 'txnId':'7'}"
        );
    }

    #[test]
    fn a_fallback_is_never_silent() {
        let info =
            LoadInfo { status: "VISIBLE", remark: Some("a label is specified"), ..LoadInfo::default() };
        assert!(info.text().ends_with(", 'group_commit_fallback':'a label is specified'}"));
    }
}
