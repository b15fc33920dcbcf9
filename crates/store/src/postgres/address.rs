//! The address of a server, as users write it: read, checked, and shown without its password.

use std::str::FromStr;

use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use url::Url;

use super::PostgresOptions;
use crate::error::StoreError;
use crate::server::ServerFault;

/// What may follow `?` in an address.
const PARAMETERS: [&str; 12] = [
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "statement-cache-capacity",
    "host",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];

/// A server, and how it is reached.
#[derive(Clone)]
pub(super) struct Address {
    /// As it is shown.
    pub(super) shown: String,
    pub(super) connect: PgConnectOptions,
}

impl Address {
    /// Reads it. What it leaves out comes from `PGHOST` and its like, and from `~/.pgpass`.
    pub(super) fn read(text: &str, options: &PostgresOptions) -> Result<Self, StoreError> {
        let refuse = |reason: String| StoreError::Server {
            server: "the Postgres server".to_owned(),
            fault: ServerFault::Address { reason },
        };
        let url = Url::parse(text.trim()).map_err(|why| refuse(why.to_string()))?;
        if !["postgres", "postgresql"].contains(&url.scheme()) {
            return Err(refuse(format!("it begins with `{}:`", url.scheme())));
        }
        if let Some((name, _)) = url.query_pairs().find(|(name, _)| !PARAMETERS.contains(&&**name)) {
            return Err(refuse(format!("there is no parameter `{name}`; those there are: {}", PARAMETERS.join(", "))));
        }
        let connect = PgConnectOptions::from_str(url.as_str()).map_err(|why| refuse(said(&why)))?;
        if url.path().trim_start_matches('/').is_empty() && connect.get_database().is_none() {
            return Err(refuse("it names no database".to_owned()));
        }
        let ms = |ms: u64| format!("{ms}ms");
        let connect = connect
            .options([
                ("statement_timeout", ms(options.statement_ms)),
                ("lock_timeout", ms(options.lock_wait_ms)),
                ("idle_in_transaction_session_timeout", ms(options.statement_ms)),
            ])
            .disable_statement_logging();
        let connect = match connect.get_application_name() {
            Some(_) => connect,
            None => connect.application_name("gesta"),
        };
        Ok(Self { shown: shown(&connect), connect })
    }
}

/// What is wrong, without what was written: a password may stand in it.
fn said(why: &sqlx::Error) -> String {
    match why {
        sqlx::Error::Configuration(_) => "a parameter has a value that can't be".to_owned(),
        _ => "its parts don't fit".to_owned(),
    }
}

fn shown(connect: &PgConnectOptions) -> String {
    let host = match connect.get_socket() {
        Some(path) => path.display().to_string(),
        None => format!("{}:{}", connect.get_host(), connect.get_port()),
    };
    let database = connect.get_database().unwrap_or(connect.get_username());
    format!("postgres://{}@{host}/{database}", connect.get_username())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Address, StoreError> {
        Address::read(text, &PostgresOptions::default())
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        for (text, shown) in [
            ("postgres://maria:s3cret@db.example:6432/shop", "postgres://maria@db.example:6432/shop"),
            ("postgresql://maria@db.example:5433/shop?password=s3cret", "postgres://maria@db.example:5433/shop"),
            (" postgres://maria:s3cret@[::1]:5433/shop?sslmode=require\n", "postgres://maria@[::1]:5433/shop"),
            ("postgres:///shop?host=/run/pg&user=maria", "postgres://maria@/run/pg/shop"),
        ] {
            let address = read(text).unwrap();
            assert_eq!(address.shown, shown, "{text}");
        }
    }

    #[test]
    fn what_can_not_be_read_is_refused_with_the_form_and_without_what_was_written() {
        for text in [
            "",
            "postgres",
            "mysql://maria:s3cret@db/shop",
            "postgres://maria:s3cret@db:port/shop",
            "postgres://maria:s3cret@db/",
            "postgres://maria:s3cret@db/shop?sslmode=s3cret",
            "postgres://maria:s3cret@db/shop?passwd=s3cret",
        ] {
            let refused = read(text).err().unwrap_or_else(|| panic!("{text} was read"));
            assert_eq!(refused.code(), "store_address", "{text}");
            let said = format!("{refused} {refused:?}");
            assert!(said.contains("postgres://USER:PASSWORD@HOST:PORT/DATABASE"), "{said}");
            assert!(!said.contains("s3cret"), "{said}");
        }
    }
}
