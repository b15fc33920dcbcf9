//! Bringing a database to the newest form, by one process at a time; recognised before it is touched.

use sqlx::postgres::PgConnection;
use sqlx::{Connection, Executor, Row};

use super::fault::{self, Failure, Kind};
use super::schema::{APPLICATION, FORM, LOCK, MIGRATIONS, version};
use super::work::bound;
use crate::error::StoreError;
use crate::server::ServerFault;

/// The oldest server whose statements these are.
const SERVER_MIN: i32 = 150_000;

/// What stands in the database before anything is done.
enum Found {
    /// Nothing of ours, nor in our place.
    Empty,
    /// Our tables, of this version.
    Ours(u32),
}

/// Looks at the database and brings it to the newest form where it is older. Several may do so at once: one does it, the
/// others wait for it.
pub(super) async fn migrate(server: &str, connection: &mut PgConnection) -> Result<(), StoreError> {
    let mut tries = 0;
    loop {
        tries += 1;
        match steps(server, connection).await {
            Ok(()) => return Ok(()),
            Err(Failure::Store(error)) => return Err(error),
            Err(Failure::Sql(cause)) if tries < 5 && fault::kind(&cause) == Kind::Clash => {}
            Err(Failure::Sql(cause)) => return Err(fault::explain(server, &cause)),
        }
    }
}

async fn steps(server: &str, connection: &mut PgConnection) -> Result<(), Failure> {
    fit(server, connection).await?;
    if matches!(found(server, connection).await?, Found::Ours(found) if found == version()) {
        return Ok(());
    }
    let mut transaction = connection.begin().await?;
    // Whoever holds it is writing the form; the server takes it back at the end, however that comes.
    bound!("SELECT pg_advisory_xact_lock($1)", LOCK).execute(&mut *transaction).await?;
    let from = match found(server, &mut transaction).await? {
        Found::Ours(from) => from,
        Found::Empty => {
            for statement in FORM {
                transaction.execute(*statement).await?;
            }
            let row = "INSERT INTO gesta.form (application, version) VALUES ($1, 0)";
            bound!(row, APPLICATION).execute(&mut *transaction).await?;
            0
        }
    };
    for step in MIGRATIONS.iter().skip(from as usize) {
        for statement in *step {
            transaction.execute(*statement).await?;
        }
    }
    let row = "UPDATE gesta.form SET version = $2 WHERE application = $1";
    bound!(row, APPLICATION, i32::try_from(version()).unwrap_or(i32::MAX)).execute(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(())
}

/// Whether the server and the database can keep what we write.
async fn fit(server: &str, connection: &mut PgConnection) -> Result<(), Failure> {
    let asked = "SELECT CAST(current_setting('server_version_num') AS INTEGER), current_setting('server_encoding')";
    let row = bound!(asked).fetch_one(connection).await?;
    let (number, encoding): (i32, String) = (row.try_get(0)?, row.try_get(1)?);
    let unfit = |found: String, wanted: &str| {
        let fault = ServerFault::Unfit { found, wanted: wanted.to_owned() };
        Failure::Store(StoreError::Server { server: server.to_owned(), fault })
    };
    if number < SERVER_MIN {
        return Err(unfit(format!("it is PostgreSQL {}", number / 10_000), "PostgreSQL 15 or later"));
    }
    if encoding != "UTF8" {
        return Err(unfit(format!("it keeps texts in {encoding}"), "the encoding UTF8"));
    }
    Ok(())
}

async fn found(server: &str, connection: &mut PgConnection) -> Result<Found, Failure> {
    let refuse = |fault: ServerFault| Failure::Store(StoreError::Server { server: server.to_owned(), fault });
    let asked = "SELECT to_regclass('gesta.form') IS NOT NULL, \
        EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = to_regnamespace('gesta'))";
    let row = bound!(asked).fetch_one(&mut *connection).await?;
    let (has_form, has_any): (bool, bool) = (row.try_get(0)?, row.try_get(1)?);
    if !has_form {
        let foreign = ServerFault::Foreign { found: "its tables have no `form` beside them".to_owned() };
        return if has_any { Err(refuse(foreign)) } else { Ok(Found::Empty) };
    }
    let row = bound!("SELECT version FROM gesta.form WHERE application = $1", APPLICATION)
        .fetch_optional(connection)
        .await
        .map_err(|cause| match fault::kind(&cause) {
            // A table `form` of another form than ours.
            Kind::Final => refuse(ServerFault::Foreign { found: fault::said(&cause) }),
            Kind::Lost | Kind::Clash => Failure::Sql(cause),
        })?;
    let found: Option<i32> = row.map(|row| row.try_get(0)).transpose()?;
    let Some(found) = found.and_then(|found| u32::try_from(found).ok()) else {
        return Err(refuse(ServerFault::Foreign { found: "its `form` names another program".to_owned() }));
    };
    let known = version();
    if found > known { Err(refuse(ServerFault::Newer { found, known })) } else { Ok(Found::Ours(found)) }
}
