//! What may be reached from a run: public hosts over HTTPS, and what `[network] allow` opens (`spec/durability.md`, 6.3).

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};
use url::{Host, Url};

/// The rules for requests that leave a run.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    allow: BTreeSet<(String, u16)>,
}

/// An address that the rules let through so far: its host's own addresses are still to be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The address.
    pub url: Url,
    /// `[network] allow` names it: it may be private and without TLS.
    pub allowed: bool,
}

/// Why a request may not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// An entry of `[network] allow` that is none.
    #[error("{0}")]
    Entry(String),
    /// No address at all.
    #[error("`{0}` is no address of a web server")]
    Url(String),
    /// Without TLS.
    #[error("{url} is not HTTPS; open it with `[network] allow = [\"{entry}\"]` if that is meant")]
    Plain {
        /// The address, without path and query.
        url: String,
        /// The entry that would open it.
        entry: String,
    },
    /// An address that is not public.
    #[error(
        "{host} is {address}, which is not public; open it with `[network] allow = [\"{entry}\"]` if that is meant"
    )]
    NotPublic {
        /// The host.
        host: String,
        /// Its address.
        address: IpAddr,
        /// The entry that would open it.
        entry: String,
    },
}

impl Policy {
    /// Rules with these `host:port` opened.
    ///
    /// # Errors
    /// An entry has another form.
    pub fn new<S: AsRef<str>>(allow: &[S]) -> Result<Self, PolicyError> {
        let read = |entry: &S| crate::folder::host_port(entry.as_ref()).map_err(PolicyError::Entry);
        Ok(Self { allow: allow.iter().map(read).collect::<Result<_, _>>()? })
    }

    /// Whether `[network] allow` opens this host and port.
    pub fn opens(&self, host: &str, port: u16) -> bool {
        self.allow.contains(&(host.to_owned(), port))
    }

    /// Checks an address before its name is resolved.
    ///
    /// # Errors
    /// It is no address, without TLS, or names an address that is not public.
    pub fn check_url(&self, text: &str) -> Result<Target, PolicyError> {
        let no_url = || PolicyError::Url(text.chars().take(200).collect());
        let url = Url::parse(text).map_err(|_| no_url())?;
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else { return Err(no_url()) };
        if !matches!(url.scheme(), "https" | "http") {
            return Err(no_url());
        }
        let allowed = self.allows(&host.to_string(), port);
        let entry = format!("{host}:{port}");
        if !allowed && url.scheme() != "https" {
            return Err(PolicyError::Plain { url: format!("http://{entry}"), entry });
        }
        let address = match host {
            Host::Ipv4(address) => Some(IpAddr::V4(address)),
            Host::Ipv6(address) => Some(IpAddr::V6(address)),
            Host::Domain(_) => None,
        };
        match address {
            Some(address) if !allowed && !is_public(address) => {
                Err(PolicyError::NotPublic { host: host.to_string(), address, entry })
            }
            _ => Ok(Target { allowed, url: url.clone() }),
        }
    }

    /// Whether `[network] allow` names this host and port.
    pub fn allows(&self, host: &str, port: u16) -> bool {
        self.allow.contains(&(host.to_lowercase(), port))
    }
}

/// IPv4 networks that are private, shared, local, reserved or for documentation; 169.254.0.0/16 has the metadata
/// services of clouds.
const CLOSED_V4: [Ipv4Net; 15] = [
    v4(0, 0, 0, 0, 8),
    v4(10, 0, 0, 0, 8),
    v4(100, 64, 0, 0, 10),
    v4(127, 0, 0, 0, 8),
    v4(169, 254, 0, 0, 16),
    v4(172, 16, 0, 0, 12),
    v4(192, 0, 0, 0, 24),
    v4(192, 0, 2, 0, 24),
    v4(192, 88, 99, 0, 24),
    v4(192, 168, 0, 0, 16),
    v4(198, 18, 0, 0, 15),
    v4(198, 51, 100, 0, 24),
    v4(203, 0, 113, 0, 24),
    v4(224, 0, 0, 0, 4),
    v4(240, 0, 0, 0, 4),
];

/// The only IPv6 network that is public. Loopback, link-local and unique local addresses, those that stand for an IPv4
/// address (mapped, compatible, NAT64) and multicast are all outside of it.
const OPEN_V6: Ipv6Net = v6([0x2000, 0], 3);

/// What is not public inside of it: protocol assignments with Teredo, documentation, 6to4.
const CLOSED_V6: [Ipv6Net; 4] =
    [v6([0x2001, 0], 23), v6([0x2001, 0x0db8], 32), v6([0x2002, 0], 16), v6([0x3fff, 0], 20)];

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(first: [u16; 2], length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(first[0], first[1], 0, 0, 0, 0, 0, 0), length)
}

/// Whether anybody on the internet can be reached under this address, and nobody nearer.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !CLOSED_V4.iter().any(|net| net.contains(&address)),
        IpAddr::V6(address) => OPEN_V6.contains(&address) && !CLOSED_V6.iter().any(|net| net.contains(&address)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        for public in ["1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1", "2a00:1450::1"] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        let closed = [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.0.9",
            "169.254.169.254",
            "172.31.255.255",
            "192.168.1.1",
            "192.0.0.192",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001:0:1::1",
            "2001:db8::1",
            "ff02::1",
            "fec0::1",
        ];
        for address in closed {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn urls_are_let_through_as_the_table_says() {
        let policy = Policy::new(&["localhost:8080", "10.0.0.5:443", "[::1]:90"]).unwrap();
        let table = [
            ("https://example.com/x", Ok(false)),
            ("http://localhost:8080/x", Ok(true)),
            ("http://LOCALHOST:8080/x", Ok(true)),
            ("https://10.0.0.5/x", Ok(true)),
            ("http://[::1]:90/", Ok(true)),
            ("http://localhost:8081/", Err("http://localhost:8081 is not HTTPS")),
            ("http://example.com/", Err("http://example.com:80 is not HTTPS")),
            ("https://127.0.0.1/", Err("127.0.0.1 is 127.0.0.1, which is not public")),
            ("https://0x7f.1/", Err("127.0.0.1 is 127.0.0.1, which is not public")),
            ("https://2130706433/", Err("127.0.0.1 is 127.0.0.1, which is not public")),
            ("https://[::ffff:10.0.0.5]/", Err("[::ffff:a00:5] is ::ffff:10.0.0.5, which is not public")),
            ("https://10.0.0.5:444/", Err("10.0.0.5 is 10.0.0.5, which is not public")),
            ("file:///etc/passwd", Err("`file:///etc/passwd` is no address of a web server")),
            ("nonsense", Err("`nonsense` is no address of a web server")),
        ];
        for (url, expected) in table {
            match (policy.check_url(url), expected) {
                (Ok(target), Ok(allowed)) => assert_eq!(target.allowed, allowed, "{url}"),
                (Err(why), Err(text)) => assert!(why.to_string().starts_with(text), "{url}: {why}"),
                (got, _) => panic!("{url}: {got:?}"),
            }
        }
    }
}
