//! The document of an agent's folder, opened in a worker to see whether it can be used and what is doubtful in it.

use gesta_document::OpenError;
use gesta_runtime::folder::{AGENT_FILE, Folder, Place, Problem, Report};
use gesta_sandbox::{Cause, Pool, PoolSettings};

/// What was found beside the problems: one line for a person.
pub(crate) type Told = String;

/// Adds to a report what a worker says of the folder's document. Nothing where the folder has none.
pub(crate) async fn check(folder: &Folder, report: &mut Report) -> Option<Told> {
    let (document, terms) = (folder.settings.document.as_ref()?, folder.document_terms()?);
    let of_file = |message: String| Problem::new(document.file.clone(), message);
    let pool = Pool::new(PoolSettings { warm: 0, ..document.pool() });
    let walls = match pool.start().await {
        Ok(walls) => walls,
        Err(why) => {
            report.problems.push(of_file(format!("cannot be opened: {why}")));
            return None;
        }
    };
    let found = match pool.check(&document.base, &terms).await {
        Ok(found) => found,
        Err(why) => {
            report.problems.push(match why.cause {
                Cause::Open(OpenError::Base { message, at, .. }) => {
                    of_file(message).at(Some(Place { line: at.line, column: at.column }))
                }
                cause => of_file(cause.to_string()),
            });
            return None;
        }
    };
    for tool in found.tools.iter().filter(|tool| terms.names_taken.contains(&tool.name)) {
        let why = format!("the tool `{}` is also one of `[[tools]]`", tool.name);
        report.problems.push(of_file(why).fixed_by("rename one of the two"));
    }
    report.warnings.extend(found.warnings.iter().map(|warning| of_file(warning.clone())));
    for grant in &found.grants_missing {
        let why = format!("calls {grant}, which is not lent to it: the call throws");
        report.warnings.push(of_file(why).fixed_by(format!("declare `[grants.{grant}]` in {AGENT_FILE}")));
    }
    // Where the model may add tools, those may call what no tool calls yet.
    for grant in found.grants_unused.iter().filter(|_| !found.adds_tools) {
        report
            .warnings
            .push(Problem::new(AGENT_FILE, "no tool of the document calls it").about(format!("grants.{grant}")));
    }
    named(folder, &found, report);
    let (tools, adds) = (found.tools.len(), if found.adds_tools { ", and can be given more" } else { "" });
    Some(format!("{} has {tools} tools{adds}; walls: {walls}", document.file))
}

/// Rules that name a tool which neither the folder nor its document has.
fn named(folder: &Folder, found: &gesta_document::Report, report: &mut Report) {
    let plan = &folder.settings.plan;
    let is_there = |name: &str| {
        let of_folder = plan.tools.iter().any(|tool| tool.name == name);
        of_folder || found.tools.iter().any(|tool| tool.name == name)
    };
    let required = plan.contract.act_when_asked.iter().flat_map(|act| &act.required_tools);
    let required = required.map(|name| ("act_when_asked.required_tools".to_owned(), name));
    let ruled = folder.settings.decisions.iter().enumerate();
    let ruled = ruled.map(|(at, rule)| (format!("decisions[{at}].tool"), &rule.tool));
    let plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    for (key, name) in required.chain(ruled).filter(|(_, name)| plain(name) && !is_there(name)) {
        let problem = Problem::new(AGENT_FILE, format!("there is no tool `{name}`")).about(key);
        // A tool of this name may still be added.
        if found.adds_tools { report.warnings.push(problem) } else { report.problems.push(problem) }
    }
}
