//! `tributary wal inspect` and `tributary wal repair`: the log of a stopped server, for its owner.
//!
//! Inspecting changes nothing. Repairing makes only the requested changes, after a backup, and reports the losses.

use crate::config::Config;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use tributary_catalog::{Catalog, CatalogLocation};
use tributary_ingest::inspect::{EntryFacts, Losses, TableLoss, describe};
use tributary_types::TableId;
use tributary_wal::survey::Segment;
use tributary_wal::{Damage, DamageKind, Extent, Found, OsDisk, Repaired, Survey};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Lists or repairs the write-ahead log of a stopped server
#[derive(Subcommand)]
pub enum WalCommand {
    /// Lists segments, records and damage; exit code 1 if there is damage other than a torn end
    Inspect(InspectArgs),
    /// Cuts the log at its first damage, or skips a damaged place, with a backup; without --cut or
    /// --skip says what either would lose and changes nothing
    Repair(RepairArgs),
}

#[derive(Args)]
struct Which {
    /// A directory of a log; without it all that the configuration names
    #[arg(long, value_name = "DIR")]
    dir: Vec<PathBuf>,
    /// A TOML file with settings
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Directory of all data
    #[arg(long, value_name = "DIR")]
    storage_root_path: Option<String>,
    /// One JSON document per line
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub struct InspectArgs {
    #[command(flatten)]
    which: Which,
    /// Only segments, damage and sums, no records
    #[arg(long)]
    brief: bool,
}

#[derive(Args)]
pub struct RepairArgs {
    #[command(flatten)]
    which: Which,
    /// End the log before its first damage
    #[arg(long, conflicts_with = "skip")]
    cut: bool,
    /// Skip the damaged place at this offset of this segment file, and preserve everything after it
    #[arg(long, value_name = "FILE:OFFSET", value_parser = place)]
    skip: Option<(String, u64)>,
}

fn place(text: &str) -> Result<(String, u64), String> {
    let wrong = || format!("`{text}` is not FILE:OFFSET, like wal-00000000000000000000.log:4096");
    let (file, offset) = text.rsplit_once(':').ok_or_else(wrong)?;
    Ok((file.to_owned(), offset.parse().map_err(|_| wrong())?))
}

impl WalCommand {
    /// Runs the command.
    ///
    /// # Errors
    /// A directory that a server has open, or that can't be read.
    pub fn run(self) -> Outcome<ExitCode> {
        match self {
            Self::Inspect(args) => inspect(&args),
            Self::Repair(args) => repair(&args),
        }
    }
}

impl Which {
    fn config(&self) -> Outcome<Config> {
        let root = self.storage_root_path.clone();
        let given = root.into_iter().map(|value| ("storage_root_path", value));
        Ok(Config::load(self.config.as_deref(), std::env::vars_os(), given)?)
    }

    fn dirs(&self, config: &Config) -> Vec<PathBuf> {
        if self.dir.is_empty() { config.wal_dirs() } else { self.dir.clone() }
    }
}

fn inspect(args: &InspectArgs) -> Outcome<ExitCode> {
    let config = args.which.config()?;
    let mut is_damaged = false;
    for dir in args.which.dirs(&config) {
        let survey = Survey::open(&OsDisk, &dir)?;
        let names = TableNames::read(&config);
        let mut view = View { names: &names, is_json: args.which.json, is_brief: args.brief };
        let extent = survey.walk(&mut |found| {
            if let Found::Damage(damage) = &found {
                is_damaged |= is_real(damage);
            }
            view.show(&found);
        })?;
        view.extent(&dir.display().to_string(), &extent);
    }
    Ok(if is_damaged { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The names of tables, as far as the catalog can be read.
struct TableNames(HashMap<TableId, String>);

impl TableNames {
    fn read(config: &Config) -> Self {
        let location =
            CatalogLocation::of_server(&config.storage_root(), config.settings.catalog_database().as_ref());
        // Opening would create a missing catalog.
        if !location.exists() {
            return Self(HashMap::new());
        }
        let names = tokio::runtime::Builder::new_current_thread().enable_all().build().map(|runtime| {
            runtime.block_on(async {
                let catalog = Catalog::open(&location).await?;
                let names =
                    catalog.all_tables().iter().map(|def| (def.id, def.table_ref().to_string())).collect();
                catalog.close().await;
                Ok::<_, tributary_catalog::CatalogError>(names)
            })
        });
        match names {
            Ok(Ok(names)) => Self(names),
            Ok(Err(error)) => {
                eprintln!("tables are shown by their numbers: {error}");
                Self(HashMap::new())
            }
            Err(_) => Self(HashMap::new()),
        }
    }

    fn of(&self, table: TableId) -> String {
        self.0.get(&table).map_or_else(|| format!("table {table}"), |name| format!("{name} (table {table})"))
    }
}

struct View<'a> {
    names: &'a TableNames,
    is_json: bool,
    is_brief: bool,
}

impl View<'_> {
    fn show(&mut self, found: &Found) {
        match found {
            Found::Segment(segment) => self.segment(segment),
            Found::Frame(_) | Found::Entry { .. } if self.is_brief => {}
            Found::Frame(frame) if self.is_json => println!(
                "{}",
                json!({ "what": "frame", "file": frame.file, "offset": frame.offset, "lsn": frame.lsn, "bytes": frame.bytes,
                        "entries": frame.entries, "checksum": "right" })
            ),
            Found::Frame(frame) => println!(
                "  frame at byte {}, LSN {}: {} bytes, {} entries, checksum right",
                frame.offset, frame.lsn, frame.bytes, frame.entries
            ),
            Found::Entry { lsn, entry } => self.entry(lsn.0, &describe(entry)),
            Found::Damage(damage) => self.damage(damage),
        }
    }

    fn segment(&self, segment: &Segment) {
        let Segment { file, first, file_bytes, header_value } = segment;
        if self.is_json {
            println!(
                "{}",
                json!({ "what": "segment", "file": file, "first_lsn": first, "file_bytes": file_bytes, "next_txn": header_value })
            );
        } else {
            let next = header_value
                .map_or_else(|| "its header is damaged".to_owned(), |txn| format!("next transaction {txn}"));
            println!("segment {}: from LSN {first}, {file_bytes} bytes, {next}", file.display());
        }
    }

    fn entry(&self, lsn: u64, facts: &EntryFacts) {
        if self.is_json {
            let mut value = serde_json::to_value(facts).unwrap_or_default();
            value["what"] = "entry".into();
            value["lsn"] = lsn.into();
            value["table_name"] = self.names.0.get(&TableId(facts.table)).cloned().into();
            println!("{value}");
        } else {
            println!("    LSN {lsn}: {}", in_words(facts, self.names));
        }
    }

    fn damage(&self, damage: &Damage) {
        if self.is_json {
            println!("{}", damage_json(damage));
        } else {
            for line in damage_text(damage, self.names) {
                println!("{line}");
            }
        }
    }

    fn extent(&self, dir: &str, extent: &Extent) {
        let Extent { segments, frames, entries, first_lsn, end_lsn, header_value, torn: _ } = extent;
        if self.is_json {
            println!(
                "{}",
                json!({ "what": "log", "dir": dir, "segments": segments, "frames": frames, "entries": entries,
                        "first_lsn": first_lsn, "end_lsn": end_lsn, "next_txn": header_value })
            );
        } else {
            println!(
                "log {dir}: {segments} segments, {frames} frames, {entries} entries, LSN {first_lsn} to {end_lsn}, \
                 next transaction {header_value}"
            );
        }
    }
}

fn in_words(facts: &EntryFacts, names: &TableNames) -> String {
    let mut text = format!("{}, {}, transaction {}", facts.kind, names.of(TableId(facts.table)), facts.txn);
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            text.push_str(&format!(", {name} {value}"));
        }
    };
    add("load", facts.load.map(|load| load.to_string()));
    add("version", facts.version.map(|version| version.to_string()));
    add("label", facts.label.clone());
    add("loads", facts.loads.map(|loads| loads.to_string()));
    add("rows", facts.rows.map(|rows| rows.to_string()));
    add("data files", facts.files.filter(|&files| files > 0).map(|files| files.to_string()));
    add("bytes", Some(facts.bytes.to_string()));
    add("UNREADABLE:", facts.unreadable.clone());
    text
}

fn damage_json(damage: &Damage) -> Value {
    let remains: Vec<_> = damage.remains.iter().map(describe).collect();
    json!({ "what": "damage", "file": damage.file, "offset": damage.offset, "lsn": damage.lsn, "bytes": damage.bytes,
            "reason": damage.reason, "kind": kind_name(damage.kind), "checksum": "wrong", "remains": remains })
}

const fn kind_name(kind: DamageKind) -> &'static str {
    match kind {
        DamageKind::TornTail => "torn_tail",
        DamageKind::Hole => "hole",
        DamageKind::Header => "header",
    }
}

fn damage_text(damage: &Damage, names: &TableNames) -> Vec<String> {
    let Damage { file, offset, lsn, bytes, reason, kind, remains } = damage;
    let what = match kind {
        DamageKind::TornTail => "unfinished write at the end, never acknowledged; a start cuts it",
        DamageKind::Hole => "DAMAGE; what follows is readable",
        DamageKind::Header => "DAMAGE of the segment's header; none of its frames can be read",
    };
    let mut lines =
        vec![format!("  {what}: {} at byte {offset} (LSN {lsn}), {bytes} bytes: {reason}", file.display())];
    if !remains.is_empty() {
        lines.push("    the damaged bytes seem to have held:".to_owned());
        lines.extend(remains.iter().map(|entry| format!("      {}", in_words(&describe(entry), names))));
    }
    lines
}

/// The first damage of a log, or the one that was named; and what giving it up loses.
struct Plan {
    damage: Damage,
    /// Lost with either way of repair, as far as it can be made out.
    within: Losses,
    /// Additional loss by cutting there.
    behind: Losses,
    next_txn: u64,
}

impl Plan {
    /// Whether somebody has to decide. An unfinished write at the end was never acknowledged, and a
    /// start cuts it.
    fn is_real(&self) -> bool {
        is_real(&self.damage)
    }
}

fn is_real(damage: &Damage) -> bool {
    damage.kind != DamageKind::TornTail
}

fn plans(survey: &Survey<'_>) -> Outcome<Vec<Plan>> {
    let mut plans: Vec<Plan> = Vec::new();
    let extent = survey.walk(&mut |found| match found {
        Found::Damage(damage) => {
            for plan in &mut plans {
                damage.remains.iter().for_each(|entry| plan.behind.add(entry));
            }
            let mut within = Losses::default();
            damage.remains.iter().for_each(|entry| within.add(entry));
            plans.push(Plan { damage, within, behind: Losses::default(), next_txn: 0 });
        }
        Found::Entry { entry, .. } => plans.iter_mut().for_each(|plan| plan.behind.add(&entry)),
        _ => {}
    })?;
    plans.iter_mut().for_each(|plan| plan.next_txn = extent.header_value);
    Ok(plans)
}

fn repair(args: &RepairArgs) -> Outcome<ExitCode> {
    let config = args.which.config()?;
    let mut found_named = args.skip.is_none();
    let mut is_left = false;
    for dir in args.which.dirs(&config) {
        let survey = Survey::open(&OsDisk, &dir)?;
        let names = TableNames::read(&config);
        let plans = plans(&survey)?;
        let Some(first) = plans.first() else {
            say(args, json!({ "what": "sound", "dir": dir }), &[format!("log {}: no damage", dir.display())]);
            continue;
        };
        let backup = format!("backup-{}", now_seconds());
        if args.cut {
            let repaired = survey.cut(&first.damage, first.next_txn, &backup)?;
            report(args, "cut", first, &repaired, &names);
        } else if let Some((file, offset)) = &args.skip {
            let named = plans.iter().find(|plan| {
                plan.damage.offset == *offset
                    && (plan.damage.file.ends_with(file) || plan.damage.file == *file)
            });
            let Some(plan) = named else { continue };
            found_named = true;
            let repaired = survey.skip(&plan.damage, &backup)?;
            report(args, "skip", plan, &repaired, &names);
            is_left |= plans.iter().filter(|plan| plan.is_real()).count() > 1;
        } else {
            is_left |= plans.iter().any(Plan::is_real);
            plans.iter().for_each(|plan| propose(args, plan, &names));
        }
    }
    if !found_named {
        return Err(
            "there is no damage at the place that --skip names; `tributary wal inspect` lists all".into()
        );
    }
    Ok(if is_left { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn propose(args: &RepairArgs, plan: &Plan, names: &TableNames) {
    let damage = &plan.damage;
    let file = damage.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut lines = damage_text(damage, names);
    if !plan.is_real() {
        return say(args, damage_json(damage), &lines);
    }
    lines.push("  `--cut` would lose, besides what cannot be read and unless data files have it:".to_owned());
    lines.extend(losses_text(&plan.within, names));
    lines.extend(losses_text(&plan.behind, names));
    if damage.kind == DamageKind::Hole {
        lines.push(format!(
            "  `--skip {file}:{}` would lose only what the damaged bytes held:",
            damage.offset
        ));
        lines.extend(losses_text(&plan.within, names));
    }
    let mut value = damage_json(damage);
    value["lost_by_cut"] = json!({ "within": plan.within, "behind": plan.behind });
    say(args, value, &lines);
}

fn report(args: &RepairArgs, way: &str, plan: &Plan, repaired: &Repaired, names: &TableNames) {
    let mut lines = damage_text(&plan.damage, names);
    lines.push(format!(
        "  {way}: done. As they were before: {} changed and {} moved files in {}",
        repaired.changed.len(),
        repaired.moved.len(),
        repaired.backup.display()
    ));
    lines.push("  lost, besides what could not be read and unless data files have it:".to_owned());
    lines.extend(losses_text(&plan.within, names));
    let mut value = json!({ "what": "repaired", "way": way, "damage": damage_json(&plan.damage), "backup": repaired.backup,
        "changed": repaired.changed, "moved": repaired.moved, "lost": { "within": plan.within } });
    if way == "cut" {
        lines.extend(losses_text(&plan.behind, names));
        value["lost"]["behind"] = json!(plan.behind);
    }
    say(args, value, &lines);
}

fn losses_text(losses: &Losses, names: &TableNames) -> Vec<String> {
    losses.tables().map(|(table, loss)| format!("    {}: {}", names.of(table), loss_text(loss))).collect()
}

fn loss_text(loss: &TableLoss) -> String {
    let TableLoss {
        rows,
        async_loads,
        transactions,
        commits,
        prepared,
        keys,
        rejected,
        aborts,
        truncations,
        unreadable,
    } = loss;
    let shown: Vec<String> = transactions.iter().take(20).map(ToString::to_string).collect();
    let more = if transactions.len() > shown.len() { ", …" } else { "" };
    let mut text = format!(
        "{rows} rows, {async_loads} asynchronous loads, {commits} commits, {} transactions ({}{more})",
        transactions.len(),
        shown.join(", ")
    );
    if *commits > 0 {
        text.push_str(
            " (asynchronous rows that are kept and whose commit is not are committed again: doubled if data files have them)",
        );
    }
    for (count, what) in [
        (prepared, "prepared two-phase loads"),
        (keys, "idempotency keys and offsets of channels (loads with them would be taken again)"),
        (rejected, "loads with rejected rows (which would not be found)"),
        (aborts, "aborts (what they aborted waits again)"),
        (truncations, "truncations (the rows that they removed come back)"),
        (unreadable, "entries that can't be read"),
    ] {
        if *count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    text
}

fn say(args: &RepairArgs, value: Value, lines: &[String]) {
    if args.which.json {
        println!("{value}");
    } else {
        lines.iter().for_each(|line| println!("{line}"));
    }
}

fn now_seconds() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
