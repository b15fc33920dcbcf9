//! What can go wrong with a store that is a server: each fault says what to do about it.

/// Why a database server did not do what it was asked. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServerFault {
    /// Its address can't be read. The address itself is never shown: a password may stand in it.
    #[error("can't be read as an address ({reason}); write postgres://USER:PASSWORD@HOST:PORT/DATABASE")]
    Address {
        /// What is wrong with it.
        reason: String,
    },
    /// Nobody answers, or the connection broke.
    #[error("can't be reached ({reason}); start it, or name another in DATABASE_URL")]
    Unreachable {
        /// What the network says.
        reason: String,
    },
    /// User or password are wrong, or the server's rules let nobody in from here.
    #[error("does not let us in ({reason}); mend user and password in DATABASE_URL, or the server's pg_hba.conf")]
    Refused {
        /// What the server says.
        reason: String,
    },
    /// The connection can't be made safe: the server has no TLS, or a certificate that is not trusted.
    #[error("can't be trusted ({reason}); mend sslmode and sslrootcert in DATABASE_URL, or the server's certificate")]
    Untrusted {
        /// What is wrong.
        reason: String,
    },
    /// The server has no such database.
    #[error("has no such database ({reason}); make it with `createdb`, or name another in DATABASE_URL")]
    NoDatabase {
        /// What the server says.
        reason: String,
    },
    /// The user may not do this.
    #[error("does not allow it ({reason}); give the user the right to create in the database, or name another user")]
    NoRight {
        /// What the server says.
        reason: String,
    },
    /// The server or the database is not made as it has to be.
    #[error("is not fit for it: {found}, and {wanted} is needed; name another database in DATABASE_URL")]
    Unfit {
        /// What it is.
        found: String,
        /// What it should be.
        wanted: String,
    },
    /// The tables there are not ours.
    #[error("has a schema `gesta` of another program ({found}); it was left untouched: name another database")]
    Foreign {
        /// What was found.
        found: String,
    },
    /// The tables were made by a newer version.
    #[error("has schema version {found}, this program knows up to {known}; it was left untouched: update the program")]
    Newer {
        /// The version found.
        found: u32,
        /// The newest version known.
        known: u32,
    },
    /// Nothing can be written there.
    #[error("can only be read; name the primary and not a standby, or end the server's read-only mode")]
    ReadOnly,
    /// There is no room. Nothing that was acknowledged is lost.
    #[error("has no room left ({reason}); free some space there and try again")]
    Full {
        /// What the server says.
        reason: String,
    },
    /// All connections were in use for too long.
    #[error("had no connection free for {waited_ms} ms; try again, or allow more connections")]
    Busy {
        /// How long was waited.
        waited_ms: u64,
    },
    /// A statement took too long, or waited too long for another.
    #[error("took too long ({reason}); try again")]
    Slow {
        /// What the server says.
        reason: String,
    },
    /// A value has a form that the server doesn't store.
    #[error("can't store a name with a NUL character ({reason}); use another name")]
    Unstorable {
        /// What the server says.
        reason: String,
    },
    /// The tables are not as we made them.
    #[error("is damaged or was changed by hand ({reason}); restore it from a backup")]
    Damaged {
        /// What the server says.
        reason: String,
    },
    /// Anything else.
    #[error("failed ({reason}); the server's log may tell more")]
    Failed {
        /// What the server says.
        reason: String,
    },
}

impl ServerFault {
    /// A stable word for programs; the docs list them.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Address { .. } => "store_address",
            Self::Unreachable { .. } => "store_unreachable",
            Self::Refused { .. } | Self::Untrusted { .. } | Self::NoDatabase { .. } | Self::NoRight { .. } => {
                "store_refused"
            }
            Self::Unfit { .. } => "store_unfit",
            Self::Foreign { .. } => "store_foreign",
            Self::Newer { .. } => "store_newer",
            Self::ReadOnly => "store_read_only",
            Self::Full { .. } => "store_full",
            Self::Busy { .. } | Self::Slow { .. } => "store_locked",
            Self::Unstorable { .. } => "name_unstorable",
            Self::Damaged { .. } => "store_damaged",
            Self::Failed { .. } => "store_io",
        }
    }

    /// Whether the same request may succeed later without anyone changing it.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Full { .. } | Self::Busy { .. } | Self::Slow { .. })
    }
}
