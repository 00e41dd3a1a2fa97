//! `SELECT … INTO OUTFILE`: the rows of a query become files of others.
//!
//! Not its business: how files are written, which [`crate::files::outfile`] knows.

use super::EngineSession;
use crate::access::interrupt::Interrupt;
use crate::access::writing;
use crate::answer::Answer;
use crate::files::outfile::{PROPERTIES, Target, file_bytes_max, form, write, wrong};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tributary_files::{Output, Properties};
use tributary_query::{Grid, ScalarValue};
use tributary_sql::Outfile;
use tributary_types::SqlError;

impl EngineSession {
    pub(super) async fn run_outfile(
        &mut self,
        outfile: &Outfile,
        params: &[ScalarValue],
    ) -> Result<Answer, SqlError> {
        let is_local = outfile.path.starts_with("file://");
        let (privilege, object) = writing(is_local);
        self.engine.gate.check(&self.principal, privilege, object)?;
        let given = outfile.properties.0.iter().cloned();
        let mut properties: Properties = given.collect();
        let form = form(outfile.format.as_deref(), &mut properties, self.engine.lines)?;
        let file_bytes_max = file_bytes_max(properties.take_any(["max_file_size"]))?;
        let success = properties.take_any(["success_file_name"]);
        let local_dir = self.engine.options.secure_load_dir.clone();
        let output =
            Output::open(&outfile.path, &mut properties, local_dir.as_deref(), &self.engine.options.egress)?;
        if let Some((name, _)) = properties.rest().next() {
            return Err(wrong(&format!(
                "Unknown properties: {name}; besides those of the place there are {}",
                PROPERTIES.join(", ")
            )));
        }
        let _admitted = self.admit_query()?;
        let process = Arc::clone(&self.process);
        let interrupt = Interrupt::by_kill(&process.stop).or_after(self.query_timeout());
        let view = self.view();
        let result = interrupt
            .wait(self.queries.query_for_files(&view, &outfile.query, params, form.nested()))
            .await??;
        let target = Arc::new(Target::new(output, form, file_bytes_max, Target::random_id()));
        let taken = AtomicU64::new(0);
        let written = write(&target, result, 1, success.as_deref(), interrupt, &taken).await?;
        let grid = Grid::new(&["FileNumber#", "TotalRows#", "FileSize#", "URL"]).with_row(vec![
            written.iter().map(|by| by.files).sum::<u64>().into(),
            written.iter().map(|by| by.rows).sum::<u64>().into(),
            written.iter().map(|by| by.bytes).sum::<u64>().into(),
            target.shown().into(),
        ]);
        Answer::grid(&grid)
    }
}
