//! Every SQL statement of every backend, read by a parser and held to `spec/durability.md`, 5.2.

use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use sqlparser::ast::{
    BinaryOperator, ConflictTarget, Expr, FromTable, Insert, OnConflictAction, OnInsert, Query, Select, SetExpr,
    Statement, TableConstraint, TableFactor, TableObject, TableWithJoins, Visit, Visitor,
};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, SQLiteDialect};
use sqlparser::parser::Parser;

use crate::{postgres, sqlite};

/// A backend's statements.
struct Backend {
    dialect: &'static dyn Dialect,
    /// Those that read or write one bucket.
    one: &'static [(&'static str, &'static str)],
    /// Those that read across buckets, for people.
    across: &'static [(&'static str, &'static str)],
    /// Those that make the tables.
    form: Vec<String>,
}

fn backends() -> [Backend; 2] {
    let sqlite = Backend {
        dialect: &SQLiteDialect {},
        one: sqlite::statements::ONE_BUCKET,
        across: sqlite::statements::ACROSS,
        form: sqlite::schema::MIGRATIONS.iter().map(|&it| it.to_owned()).collect(),
    };
    let postgres = Backend {
        dialect: &PostgreSqlDialect {},
        one: postgres::statements::ONE_BUCKET,
        across: postgres::statements::ACROSS,
        form: postgres::schema::MIGRATIONS.iter().flat_map(|step| step.iter()).map(|&it| it.to_owned()).collect(),
    };
    [sqlite, postgres]
}

/// What is wrong with one statement.
#[derive(Default)]
struct Findings {
    /// The conditions that stand first in each, without the parameter's sign.
    wanted: &'static [&'static str],
    /// Names that stand for parts of the statement itself.
    parts: BTreeSet<String>,
    changed: Vec<String>,
    wrong: Vec<String>,
}

const ONE_BUCKET: &[&str] = &["bucket = 1", "tenant = 2"];
const ACROSS: &[&str] = &["tenant = 1"];

/// What every database has, or has a word for.
const FUNCTIONS: [&str; 5] = ["coalesce", "length", "extract", "clock_timestamp", "exists"];

fn findings(dialect: &dyn Dialect, sql: &str, wanted: &'static [&'static str]) -> Vec<String> {
    let mut found = Findings { wanted, ..Findings::default() };
    match Parser::parse_sql(dialect, sql) {
        Err(why) => found.wrong.push(why.to_string()),
        Ok(statements) if statements.len() != 1 => found.wrong.push("it is not one statement".to_owned()),
        Ok(statements) => {
            let _ = statements.visit(&mut found);
            if wanted == ACROSS && !matches!(statements[0], Statement::Query(_)) {
                found.wrong.push("it does more than read".to_owned());
            }
        }
    }
    let tables: BTreeSet<&String> = found.changed.iter().collect();
    if tables.len() < found.changed.len() {
        found.wrong.push("it changes one table twice".to_owned());
    }
    found.wrong
}

impl Findings {
    fn check(&mut self, condition: Option<&Expr>) {
        let conditions: Vec<String> = conjuncts(condition).into_iter().map(plain).collect();
        if !conditions.iter().zip(self.wanted).all(|(found, wanted)| found == wanted)
            || conditions.len() < self.wanted.len()
        {
            self.wrong.push(format!("a condition begins with {conditions:?}"));
        }
    }

    fn insert(&mut self, insert: &Insert) {
        let first: Vec<String> = insert.columns.iter().take(2).map(ToString::to_string).collect();
        if first != ["bucket", "tenant"] {
            self.wrong.push(format!("it inserts {first:?} first"));
        }
        if insert.or.is_some() || insert.replace_into || insert.ignore {
            self.wrong.push("it inserts in SQLite's or MySQL's own way".to_owned());
        }
        if let TableObject::TableName(name) = &insert.table {
            self.changed.push(name.to_string());
        }
        let Some(OnInsert::OnConflict(conflict)) = &insert.on else { return };
        match &conflict.conflict_target {
            Some(ConflictTarget::Columns { columns, .. })
                if columns.iter().take(2).map(ToString::to_string).eq(["bucket", "tenant"]) => {}
            _ => self.wrong.push("what it conflicts with is not a key of one bucket".to_owned()),
        }
        // Without a condition it is the row that was to be inserted.
        if let OnConflictAction::DoUpdate(update) = &conflict.action
            && update.selection.is_some()
        {
            self.check(update.selection.as_ref());
        }
    }

    fn select(&mut self, select: &Select) {
        if select.from.is_empty() || select.from.iter().all(|from| self.is_part(from)) {
            return;
        }
        if select.from.len() > 1 || select.from.iter().any(|from| !from.joins.is_empty()) {
            self.wrong.push("it joins tables".to_owned());
        }
        self.check(select.selection.as_ref());
    }

    fn is_part(&self, from: &TableWithJoins) -> bool {
        from.joins.is_empty()
            && matches!(&from.relation, TableFactor::Table { name, .. } if self.parts.contains(&name.to_string()))
    }
}

impl Visitor for Findings {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let parts = query.with.iter().flat_map(|with| &with.cte_tables).map(|it| it.alias.name.to_string());
        self.parts.extend(parts);
        match &*query.body {
            SetExpr::Select(select) => self.select(select),
            SetExpr::Values(_) | SetExpr::Insert(_) | SetExpr::Update(_) => {}
            other => self.wrong.push(format!("{other} is no plain query")),
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        match statement {
            Statement::Query(_) => {}
            Statement::Insert(insert) => self.insert(insert),
            Statement::Update(update) => {
                if update.from.is_some() || !update.table.joins.is_empty() || update.or.is_some() {
                    self.wrong.push("it updates from other tables, or in SQLite's own way".to_owned());
                }
                self.changed.push(update.table.relation.to_string());
                self.check(update.selection.as_ref());
            }
            Statement::Delete(delete) => {
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
                if delete.using.is_some() || from.len() != 1 {
                    self.wrong.push("it deletes from several tables".to_owned());
                }
                self.changed.extend(from.iter().map(|from| from.relation.to_string()));
                self.check(delete.selection.as_ref());
            }
            other => self.wrong.push(format!("{other} is neither a query nor a change of rows")),
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr
            && !FUNCTIONS.contains(&function.name.to_string().to_lowercase().as_str())
        {
            self.wrong.push(format!("it calls {}", function.name));
        }
        ControlFlow::Continue(())
    }
}

/// The conditions that must all hold.
fn conjuncts(condition: Option<&Expr>) -> Vec<&Expr> {
    match condition {
        Some(Expr::BinaryOp { left, op: BinaryOperator::And, right }) => {
            let mut all = conjuncts(Some(left));
            all.extend(conjuncts(Some(right)));
            all
        }
        Some(other) => vec![other],
        None => Vec::new(),
    }
}

/// A condition without the name of its table and the sign of its parameter.
fn plain(condition: &Expr) -> String {
    let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = condition else { return condition.to_string() };
    let (left, right) = (left.to_string(), right.to_string());
    let column = left.rsplit('.').next().unwrap_or_default();
    format!("{column} = {}", right.trim_start_matches(['$', '?']))
}

#[test]
fn every_statement_of_every_backend_keeps_to_its_bucket_and_to_what_carries_over() {
    for Backend { dialect, one, across, .. } in backends() {
        for (statements, wanted) in [(one, ONE_BUCKET), (across, ACROSS)] {
            for (name, sql) in statements {
                let wrong = findings(dialect, sql, wanted);
                assert!(wrong.is_empty(), "{name} of {dialect:?}: {wrong:#?}\n{sql}");
            }
        }
    }
}

#[test]
fn every_key_of_every_table_leads_with_bucket_and_tenant() {
    for Backend { dialect, form, .. } in backends() {
        for statement in form.iter().flat_map(|sql| Parser::parse_sql(dialect, sql).unwrap()) {
            let wrong = match &statement {
                Statement::CreateTable(table) if table.temporary || table.query.is_some() => "it is no plain table",
                Statement::CreateTable(table) => match table.constraints.as_slice() {
                    [TableConstraint::PrimaryKey(key)] if leads(&key.columns, &["bucket", "tenant"]) => {
                        // Neither `UNIQUE` nor `REFERENCES` nor a number that the database gives.
                        let plain = |option: &str| ["NOT NULL", "COLLATE"].iter().any(|it| option.starts_with(it));
                        let options = table.columns.iter().flat_map(|column| &column.options);
                        if options.into_iter().all(|option| plain(&option.to_string())) { "" } else { "a column" }
                    }
                    _ => "its key",
                },
                Statement::CreateIndex(index) if index.unique || !index.include.is_empty() => "it is no plain index",
                Statement::CreateIndex(index) if leads(&index.columns, &["tenant"]) => "",
                Statement::CreateIndex(index) if leads(&index.columns, &["bucket", "tenant"]) => "",
                _ => "it makes neither a table nor an index",
            };
            assert!(wrong.is_empty(), "{wrong}: {statement}");
        }
    }
}

fn leads(columns: &[sqlparser::ast::IndexColumn], wanted: &[&str]) -> bool {
    columns.iter().take(wanted.len()).map(|column| column.column.expr.to_string()).eq(wanted.iter().copied())
}

/// What is written elsewhere is seen by no test of statements.
#[test]
fn statements_stand_in_the_files_of_statements_alone() {
    // The form of a database, what a server is, and a file as a whole, are no rows of a tenant.
    let exempt = ["postgres/migrate.rs", "sqlite/backup.rs", "portability.rs"];
    let mut files = 0;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for folder in [root.clone(), root.join("postgres"), root.join("sqlite"), root.join("memory")] {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
            let name = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
            files += 1;
            if name.ends_with("statements.rs") || exempt.contains(&name.as_str()) {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            for word in ["SELECT ", "INSERT ", "UPDATE ", "DELETE ", "WITH "] {
                assert!(!text.contains(&format!("\"{word}")), "{name} has a statement of its own: {word}");
            }
        }
    }
    assert!(files > 20, "{files} files were read");
}

/// The rules find what they are there to find.
#[test]
fn statements_that_break_a_rule_are_found() {
    for sql in [
        "SELECT run_id FROM runs WHERE run_id = $1",
        "SELECT run_id FROM runs",
        "SELECT run_id FROM runs WHERE tenant = $2 AND bucket = $1",
        "SELECT run_id FROM runs WHERE bucket = $1 AND tenant = $2 OR run_id = $3",
        "SELECT run_id FROM runs WHERE bucket = $1 AND tenant = $3",
        "SELECT r.run_id FROM runs r JOIN events e ON TRUE WHERE r.bucket = $1 AND r.tenant = $2",
        "SELECT run_id FROM runs WHERE bucket = $1 AND tenant = $2 AND run_id IN (SELECT run_id FROM events)",
        "SELECT nextval('numbers') FROM runs WHERE bucket = $1 AND tenant = $2",
        "UPDATE runs SET events = 1 WHERE run_id = $3",
        "UPDATE runs SET events = 1",
        "DELETE FROM runs WHERE tenant = $2",
        "INSERT INTO runs (tenant, bucket) VALUES ($2, $1)",
        "INSERT INTO runs (bucket, tenant, run_id) VALUES ($1, $2, $3) ON CONFLICT (run_id) DO NOTHING",
        "INSERT INTO runs (bucket, tenant, run_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        "INSERT INTO runs (bucket, tenant, run_id) VALUES ($1, $2, $3) \
         ON CONFLICT (bucket, tenant, run_id) DO UPDATE SET run_id = excluded.run_id WHERE runs.run_id IS NULL",
        "WITH a AS (UPDATE runs SET events = 1 WHERE bucket = $1 AND tenant = $2 RETURNING run_id) \
         INSERT INTO runs (bucket, tenant, run_id) SELECT $1, $2, run_id FROM a",
        "WITH a AS (UPDATE runs SET events = 1 RETURNING run_id) \
         INSERT INTO events (bucket, tenant, run_id) SELECT $1, $2, run_id FROM a",
        "LISTEN runs",
        "NOTIFY runs",
        "SET search_path = gesta",
        "CREATE TEMPORARY TABLE a (b INTEGER)",
        "SELECT 1; SELECT 2",
    ] {
        assert!(!findings(&PostgreSqlDialect {}, sql, ONE_BUCKET).is_empty(), "{sql}");
    }
    let deleted = "DELETE FROM runs WHERE tenant = $1";
    assert!(!findings(&PostgreSqlDialect {}, deleted, ACROSS).is_empty());
}
