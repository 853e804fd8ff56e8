//! Traffic that notices every gap: a ping every 10 ms, and TCP streams with as many questions and answers.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use underlay_testkit::{LabUnderTest, Netns, OutputExt, wait_for};

use crate::cluster::{OUTSIDE, PATIENCE, Pod, pods_on};
use crate::node::{RECOVERY, sh};

/// Between two pings, and between two questions of a stream.
const BEAT: Duration = Duration::from_millis(10);
/// A stream that was answered within this time flows.
const FLOWING: Duration = Duration::from_millis(200);

/// A program that runs in a machine while other things happen.
pub struct Background {
    machine: String,
    number: String,
    child: Child,
    printed: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl Background {
    /// Starts it. What it prints is seen line by line.
    pub fn start(lab: &LabUnderTest, machine: &str, command: &str) -> Self {
        let script = format!("echo $$; exec stdbuf -oL {command} 2>&1");
        let mut child = lab
            .command()
            .args(["exec", machine, "--", "sh", "-c", &script])
            .stdout(Stdio::piped())
            .spawn()
            .expect("running the lab's command");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut number = String::new();
        output.read_line(&mut number).expect("its number");
        let printed = Arc::new(Mutex::new(String::new()));
        let memory = printed.clone();
        let reader = thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let mut memory = memory.lock().expect("no panic");
                memory.push_str(&line);
                memory.push('\n');
            }
        });
        Self { machine: machine.to_owned(), number: number.trim().to_owned(), child, printed, reader }
    }

    /// Waits until it has printed this.
    pub fn wait_for(&self, text: &str) {
        wait_for(text, PATIENCE, || {
            let printed = self.printed.lock().expect("no panic");
            if printed.contains(text) { Ok(()) } else { Err(printed.clone()) }
        });
    }

    /// Ends it and returns what it printed.
    pub fn stop(mut self, lab: &LabUnderTest) -> String {
        lab.exec(&self.machine, &["kill", "-INT", &self.number]).ok();
        let _ = (self.reader.join(), self.child.wait());
        let printed = self.printed.lock().expect("no panic");
        printed.clone()
    }
}

/// What became of traffic on one way.
pub struct Gap {
    way: String,
    /// Pings without an answer, or 1 for a stream that broke.
    pub lost: usize,
    /// The longest time without an answer.
    pub longest: Duration,
}

impl fmt::Display for Gap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ms, {} lost, {}", self.longest.as_millis(), self.lost, self.way)
    }
}

/// All traffic: between pods of two nodes, and between a pod and the outside.
pub struct Traffic {
    pings: Vec<(String, Background)>,
    streams: Vec<Stream>,
}

impl Traffic {
    /// Starts it; returns when it flows.
    pub fn start(lab: &LabUnderTest) -> Self {
        let (one, two) = (&pods_on(lab, "worker1")[0], &pods_on(lab, "worker2")[0]);
        let (inside_one, inside_two) = (network_of(lab, one), network_of(lab, two));
        let mut pings = Vec::new();
        for (from, to) in one.addresses.iter().zip(&two.addresses) {
            let command = format!("ip netns exec {inside_one} {}", ping(to));
            pings.push((format!("ping pod {from} -> pod {to}"), Background::start(lab, "worker1", &command)));
            let command = ping(from);
            pings.push((format!("ping outside -> pod {from}"), Background::start(lab, "outside", &command)));
        }
        let command = format!("ip netns exec {inside_one} {}", ping(OUTSIDE[0]));
        pings.push(("ping pod -> outside".to_owned(), Background::start(lab, "worker1", &command)));
        let pod_one = || lab.network("worker1", Some(&inside_one));
        let pod_two = || lab.network("worker2", Some(&inside_two));
        let streams = [
            ("TCP pod -> pod", pod_one(), pod_two(), &two.addresses[1]),
            ("TCP outside -> pod", lab.network("outside", None), pod_one(), &one.addresses[0]),
        ];
        let start = |(way, from, to, address): (&str, Netns, Netns, &String)| {
            Stream::start(way, from, &to, address.parse().expect("an address"))
        };
        let this = Self { pings, streams: streams.map(start).into() };
        this.wait_until_flowing();
        this
    }

    /// Waits until every ping was answered once and every stream flows.
    pub fn wait_until_flowing(&self) {
        for (_, ping) in &self.pings {
            ping.wait_for("icmp_seq=");
        }
        for stream in &self.streams {
            wait_for(&stream.way, RECOVERY, || stream.flows());
        }
    }

    /// Ends it and tells the gaps.
    pub fn stop(self, lab: &LabUnderTest) -> Vec<Gap> {
        let streams = self.streams.into_iter().map(Stream::stop).collect::<Vec<_>>();
        let pings = self.pings.into_iter().map(|(way, ping)| gap_of(way, &ping.stop(lab)));
        pings.chain(streams).collect()
    }
}

fn ping(address: &str) -> String {
    format!("ping -n -D -i 0.01 {address}")
}

/// Name of a pod's network namespace on its node.
pub fn network_of(lab: &LabUnderTest, pod: &Pod) -> String {
    let script = format!(
        "for name in $(ip netns list | cut -d' ' -f1); do \
         if ip -netns $name -o address | grep -q ' {}/'; then echo $name; fi; done",
        pod.addresses[0]
    );
    sh(lab, &pod.node, &script).trim().to_owned()
}

/// Reads what ping printed.
pub fn gap_of(way: String, text: &str) -> Gap {
    // [1700000000.123456] 64 bytes from 10.244.1.3: icmp_seq=7 ttl=62 time=0.5 ms
    let read = |line: &str| -> Option<(f64, usize)> {
        let time = line.strip_prefix('[')?.split_once(']')?.0.parse().ok()?;
        let number = line.split_once("icmp_seq=")?.1.split_once(" ttl=")?.0.parse().ok()?;
        Some((time, number))
    };
    let answers: Vec<(f64, usize)> = text.lines().filter_map(read).collect();
    let (Some(begin), Some(end)) = (answers.first(), answers.last()) else {
        panic!("{way}: no answer at all: {text}");
    };
    let longest = answers.windows(2).map(|pair| pair[1].0 - pair[0].0).fold(0.0, f64::max);
    let lost = (end.1 + 1 - begin.1).saturating_sub(answers.len());
    Gap { way, lost, longest: Duration::from_secs_f64(longest) }
}

/// A TCP connection that always has something to say.
pub struct Stream {
    way: String,
    over: Arc<AtomicBool>,
    answered: Arc<Mutex<Answered>>,
}

/// What a stream remembers.
struct Answered {
    last: Instant,
    longest: Duration,
    broken: Option<String>,
}

impl Stream {
    /// Starts it from one place to an address of another.
    pub fn start(way: &str, from: Netns, to: &Netns, address: IpAddr) -> Self {
        let listener = to.enter(|| TcpListener::bind(SocketAddr::new(address, 0))).expect("listening");
        let address = listener.local_addr().expect("its address");
        thread::spawn(move || answer(&listener));
        let answered = Answered { last: Instant::now(), longest: Duration::ZERO, broken: None };
        let (over, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(answered)));
        let (stop, results) = (over.clone(), answered.clone());
        thread::spawn(move || {
            let end = from.enter(|| ask(address, &stop, &results));
            results.lock().expect("no panic").broken = end.err().map(|error| error.to_string());
        });
        Self { way: way.to_owned(), over, answered }
    }

    /// Whether answers come, or why not.
    pub fn flows(&self) -> Result<(), String> {
        let answered = self.answered.lock().expect("no panic");
        let silent = answered.last.elapsed();
        match &answered.broken {
            Some(error) => Err(error.clone()),
            None if silent < FLOWING && answered.longest > Duration::ZERO => Ok(()),
            None => Err(format!("silent for {silent:?}")),
        }
    }

    /// Ends it and tells the gap.
    pub fn stop(self) -> Gap {
        let answered = self.answered.lock().expect("no panic");
        self.over.store(true, Ordering::Relaxed);
        if let Some(error) = &answered.broken {
            println!("      {}: {error}", self.way);
        }
        let longest = answered.longest.max(answered.last.elapsed());
        Gap { way: self.way, lost: usize::from(answered.broken.is_some()), longest }
    }
}

/// Sends back what comes.
fn answer(listener: &TcpListener) {
    let Ok((mut stream, _)) = listener.accept() else { return };
    let _ = stream.set_nodelay(true);
    let mut buffer = [0; 8];
    while stream.read_exact(&mut buffer).is_ok() && stream.write_all(&buffer).is_ok() {}
}

/// Counts, and expects to hear the same.
fn ask(address: SocketAddr, over: &AtomicBool, answered: &Mutex<Answered>) -> std::io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut number: u64 = 0;
    answered.lock().expect("no panic").last = Instant::now();
    while !over.load(Ordering::Relaxed) {
        number += 1;
        stream.write_all(&number.to_be_bytes())?;
        let mut buffer = [0; 8];
        stream.read_exact(&mut buffer)?;
        if u64::from_be_bytes(buffer) != number {
            return Err(std::io::Error::other(format!("{number} came back as {buffer:?}")));
        }
        let mut answered = answered.lock().expect("no panic");
        answered.longest = answered.longest.max(answered.last.elapsed());
        answered.last = Instant::now();
        drop(answered);
        thread::sleep(BEAT);
    }
    Ok(())
}
