//! A hub of several shards: threads, each with a whole engine for some of the terminals.
//!
//! ```text
//!   ShardedHub (signals, service manager, configuration, observers, registered keys)
//!     ├─ command, result ─▶ shard 0: Driver, Engine ◀─ socket
//!     └─ command, result ─▶ shard 1: Driver, Engine ◀─ socket ─ mailboxes between the shards
//! ```
//!
//! The shards share the mailboxes, the addresses of verified senders, and nothing else.

use crate::config::{commitments, shard_of};
use crate::driver::{Driver, ShardPlace, raise_descriptor_limit};
use crate::engine::{Admission, Engine, LinkSocket, descriptors_for};
use crate::enrolment::Registrations;
use crate::gateway::{self, Addresses, hub_engine};
use crate::intercept::Interception;
use crate::observe::Observer;
use crate::report::Report;
use crate::service::{Service, handed};
use crate::shards::{Shard, Shards, Threads, add_report};
use crate::stop::Asked;
use crate::tls::TlsServer;
use crate::{Config, Error, KeyError, Role, Stop, SystemEntropy, reload};
use relay::{Entropy, Keys, Part, PublicKey, Security};
use rt::Clock;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use units::Instant;

/// A hub of several shards that listens and is ready to run.
#[derive(Debug)]
pub struct ShardedHub {
    config: Config,
    file: Option<PathBuf>,
    shards: Shards,
    /// The loop that serves observers.
    driver: Driver,
    service: Service,
    addresses: Addresses,
    /// The first shard's socket and its name, to be stored by the service manager.
    socket: Option<(String, OwnedFd)>,
    interception: Option<Interception>,
    registrations: Registrations,
    own_key: PublicKey,
    _tls: Option<TlsServer>,
}

impl ShardedHub {
    /// Opens the sockets of `config`, and starts the threads.
    ///
    /// # Errors
    /// As [`Gateway::open`](crate::Gateway::open).
    pub fn open(config: &Config) -> Result<Self, Error> {
        Self::open_then(config, || ())
    }

    /// As [`ShardedHub::open`]; calls `bound` after the datagram sockets are open and before the first
    /// thread starts.
    pub(crate) fn open_then(config: &Config, bound: impl FnOnce()) -> Result<Self, Error> {
        let Role::Hub(section) = &config.role else { return Err(Error::Shards) };
        let descriptors = raise_descriptor_limit();
        if descriptors < descriptors_for(config.limits.connections, 1) {
            tracing::warn!(descriptors, "fewer descriptors than limits.connections needs");
        }
        let (places, drivers, sockets) = bind_all(config, section.shards)?;
        bound();
        let link = sockets.first().and_then(LinkSocket::local_address);
        let socket = sockets.first().and_then(|socket| to_keep(config, socket));
        let mut driver = Driver::new()?;
        let observer = Observer::open(config, driver.now())?;
        let metrics = observer.metrics_address();
        driver.set_observer(observer)?;
        let interception = gateway::open_hub_rules(section)?;
        let tls = gateway::open_tls(section, link)?;
        let all = keys_of_shards(config)?;
        let own_key = all.first().map(|keys| keys.public()).ok_or(Error::Shards)?;
        let seed = u64::from_be_bytes(random());
        let parts = Part::all(section.shards, seed).into_iter().zip(all);
        let mut shards = Vec::new();
        for (((place, driver), socket), own) in
            places.into_iter().zip(drivers).zip(sockets).zip(parts)
        {
            let config = config.of_shard(own.0.number());
            let (part, keys) = own;
            let security = (Security::Noise(keys), part);
            let engine = open_engine(&driver, &config, socket, security)?;
            shards.push(Shard { engine, driver, place });
        }
        let threads = Threads::start(shards)?;
        driver.watch_requests(threads.up())?;
        gateway::log_control(config);
        gateway::log_promises(config, section);
        let listens = tls.as_ref().map(TlsServer::address);
        let addresses = Addresses { link, metrics, tls: listens, ..Addresses::default() };
        tracing::info!(?addresses, shards = section.shards, "hub");
        Ok(Self {
            config: config.clone(),
            file: None,
            shards: Shards::new(threads, link, commitments(&config.link, section)),
            driver,
            service: Service::new(),
            addresses,
            socket,
            interception,
            registrations: Registrations::new(config.registered_keys()),
            own_key,
            _tls: tls,
        })
    }

    /// Returns the addresses on which it listens.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Sets the file that a reload reads.
    #[must_use]
    pub fn reloading_from(mut self, file: PathBuf) -> Self {
        self.file = Some(file);
        self
    }

    /// Runs until `stop` is requested, and removes the kernel's rules.
    ///
    /// # Errors
    /// When a readiness loop fails, or a thread ends.
    pub fn run(mut self, stop: &Stop) -> Result<Report, Error> {
        let clock = Clock::from_here();
        let result = self.live(stop);
        gateway::remove_rules(self.interception.take());
        result?;
        self.driver.close_observer(&mut self.shards);
        Ok(Report { seconds: clock.now().as_secs_f64(), ..self.end() })
    }

    fn live(&mut self, stop: &Stop) -> Result<(), Error> {
        self.driver.watch(stop)?;
        if let Some((name, socket)) = &self.socket {
            self.service.keep(name, socket.as_fd());
        }
        for name in handed::close_rest() {
            self.service.forget(&name);
        }
        self.service.ready();
        loop {
            if self.driver.take_requested() {
                self.shards.threads.up().clear();
                match stop.asked() {
                    Asked::Stop => return Ok(()),
                    Asked::Drain if !self.shards.is_draining => self.drain(),
                    Asked::Drain | Asked::Nothing => {}
                }
                if stop.take_reload() {
                    self.reload();
                }
                if stop.take_upgrade() {
                    tracing::error!(
                        "upgrade refused: with hub.shards the gateway has to be restarted"
                    );
                }
            }
            if self.shards.threads.have_failed() {
                return Err(io::Error::other("the thread of a shard has ended").into());
            }
            if self.shards.is_draining && self.have_drained() {
                return Ok(());
            }
            let now = self.driver.now();
            self.store_registrations(now);
            if now >= self.service.next() {
                self.beat();
            }
            let due = self.registrations.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
            self.driver.step(&mut self.shards, self.service.next().min(due))?;
        }
    }

    /// Notifies the service manager, if all shards respond.
    fn beat(&mut self) {
        let connections =
            self.shards.threads.ask(|_| |shard: &mut Shard| shard.engine.connections());
        if connections.len() == self.shards.threads.len() {
            self.service.beat(connections.iter().sum(), &self.shards.waiting());
        }
    }

    fn drain(&mut self) {
        let limit = self.config.limits.drain;
        self.service.stopping(limit);
        tracing::info!(%limit, "draining: running connections may finish");
        if let Some(interception) = &mut self.interception
            && let Err(error) = interception.suspend()
        {
            tracing::warn!(%error, "interception not removed: new connections are still intercepted");
        }
        self.shards.is_draining = true;
        self.shards
            .threads
            .ask(|_| move |shard: &mut Shard| shard.engine.drain(shard.driver.now(), limit));
    }

    fn have_drained(&self) -> bool {
        let all = self
            .shards
            .threads
            .ask(|_| |shard: &mut Shard| shard.engine.has_drained(shard.driver.now()));
        all.into_iter().all(|has_drained| has_drained)
    }

    /// Ends all sessions, and returns the sums of the shards' counters.
    fn end(&mut self) -> Report {
        let reports = self.shards.threads.ask(|_| {
            |shard: &mut Shard| {
                let Shard { engine, driver, .. } = shard;
                engine.end(driver.now());
                while let Some(due) = engine.transmit_close(driver.now()) {
                    driver.sleep_until(due);
                }
                engine.save();
                gateway::report_of(engine, "hub", "")
            }
        });
        let mut reports = reports.into_iter();
        let mut sum = reports.next().unwrap_or_default();
        for report in reports {
            add_report(&mut sum, report);
        }
        Report { controller: self.config.link.controller.name(), ..sum }
    }

    fn reload(&mut self) {
        if self.shards.is_draining {
            tracing::warn!("reload ignored: the gateway is stopping");
            return;
        }
        self.service.reloading();
        if let Some(new) = reload::read(self.file.as_deref()) {
            let (merged, changes) = self.config.merged(&new);
            match self.put_in_force(merged) {
                Ok(()) => reload::log_changes(&changes),
                Err(error) => {
                    tracing::error!(%error, "reload refused: the old configuration stays active");
                }
            }
        }
        self.service.ready();
    }

    /// Steps that can be refused are done first.
    fn put_in_force(&mut self, config: Config) -> Result<(), Error> {
        let Role::Hub(section) = &config.role else { return Err(Error::Shards) };
        let admission = || Admission::new(section, &config.limits).map_err(Error::Addresses);
        let rules = (0..section.shards).map(|_| admission());
        let mut rules = rules.collect::<Result<Vec<Admission>, Error>>()?.into_iter();
        let keys = self.keys(&config)?;
        reload::change_hub_rules(&mut self.interception, section)?;
        self.shards.threads.ask(|number| {
            let (config, rules) = (config.of_shard(number as u32), rules.next());
            move |shard: &mut Shard| shard.engine.apply(&config, rules)
        });
        self.set_keys(&keys);
        gateway::log_promises(&config, section);
        self.shards.commitments = commitments(&config.link, section);
        if self.config.log != config.log {
            crate::logging::set_level(&config.log);
        }
        self.config = config;
        Ok(())
    }

    /// Reads the keys of `config` for each shard; the hub's own key must be unchanged.
    fn keys(&self, config: &Config) -> Result<Vec<Arc<Keys>>, Error> {
        let keys = keys_of_shards(config)?;
        match keys.iter().all(|keys| keys.public() == self.own_key) {
            true => Ok(keys),
            false => Err(Error::Keys(KeyError::OwnKey)),
        }
    }

    fn set_keys(&self, keys: &[Arc<Keys>]) {
        self.shards.threads.ask(|number| {
            let keys = keys.get(number).cloned();
            move |shard: &mut Shard| keys.into_iter().for_each(|keys| shard.engine.set_keys(keys))
        });
    }

    /// Stores keys that terminals have registered, and uses them when they are stored.
    fn store_registrations(&mut self, now: Instant) {
        let Role::Hub(hub) = &self.config.role else { return };
        while let Some(registration) = self.shards.threads.poll_registration() {
            self.registrations.take(hub, &registration);
        }
        if !self.registrations.poll(now, hub) {
            return;
        }
        match self.keys(&self.config) {
            Ok(keys) => self.set_keys(&keys),
            Err(error) => tracing::error!(%error, "registered keys not used: reload to try again"),
        }
    }
}

type Bound = (Vec<ShardPlace>, Vec<Driver>, Vec<LinkSocket>);

/// Opens the loop and the socket of each shard, in the order in which the kernel numbers them.
fn bind_all(config: &Config, count: u32) -> Result<Bound, Error> {
    let places = ShardPlace::all(count)?;
    let drivers = places.iter().map(|place| Driver::of_shard(place.clone()));
    let drivers = drivers.collect::<io::Result<Vec<Driver>>>()?;
    let mut path = config.effective_paths().pop().ok_or(Error::NoPeer)?;
    let mut sockets = Vec::new();
    for driver in &drivers {
        let socket = gateway::bind(&path, &mut driver.host()?)?;
        // The kernel may have chosen the port.
        path.link.listen = socket.local_address().unwrap_or(path.link.listen);
        sockets.push(socket);
    }
    Ok((places, drivers, sockets))
}

/// Returns the first shard's socket, to be stored for the next start, which may have another number
/// of shards.
fn to_keep(config: &Config, socket: &LinkSocket) -> Option<(String, OwnedFd)> {
    // The next start may use another port.
    if config.link.listen.port() == 0 {
        return None;
    }
    let address: SocketAddr = socket.local_address()?;
    let descriptor = socket.udp()?.descriptor()?.try_clone_to_owned().ok()?;
    Some((handed::name_of("link", address), descriptor))
}

fn open_engine(
    driver: &Driver,
    config: &Config,
    socket: LinkSocket,
    security: (Security, Part),
) -> Result<Engine, Error> {
    let Role::Hub(section) = &config.role else { return Err(Error::Shards) };
    let mut engine = hub_engine(driver, config, section, socket, security)?;
    engine.log_ends(config);
    engine.watch_addresses(config);
    engine.set_resolver(&config.resolver);
    Ok(engine)
}

/// Reads the keys of `config` for each shard.
fn keys_of_shards(config: &Config) -> Result<Vec<Arc<Keys>>, Error> {
    let Security::Noise(keys) = config.keys()? else { return Err(Error::Shards) };
    let count = config.shards();
    let split = keys.split(count, |name| shard_of(name, count));
    Ok(split.into_iter().map(Arc::new).collect())
}

fn random() -> [u8; 8] {
    let mut bytes = [0; 8];
    SystemEntropy.fill(&mut bytes);
    bytes
}
