//! What was measured, printed as it comes.

use std::time::Duration;

use serde::Serialize;

use crate::rounded;

/// With fewer times than this a percentile says nothing.
const ENOUGH: usize = 50;

/// One figure.
#[derive(Debug, Serialize)]
struct Figure {
    name: String,
    value: f64,
    #[serde(skip_serializing_if = "str::is_empty")]
    unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    aim: Option<f64>,
}

/// All figures so far.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Figures(Vec<Figure>);

impl Figures {
    /// Prints and keeps a figure.
    pub fn tell(&mut self, name: impl Into<String>, value: f64, unit: &'static str) {
        self.add(name.into(), value, unit, None);
    }

    /// As [`Self::tell`], with the most that it should be.
    pub fn tell_aimed(&mut self, name: impl Into<String>, value: f64, unit: &'static str, aim: f64) {
        self.add(name.into(), value, unit, Some(aim));
    }

    /// As [`Self::tell_aimed`] where there is an aim.
    pub fn tell_perhaps_aimed(
        &mut self,
        name: impl Into<String>,
        value: f64,
        unit: &'static str,
        aim: Option<f64>,
    ) {
        self.add(name.into(), value, unit, aim);
    }

    fn add(&mut self, name: String, value: f64, unit: &'static str, aim: Option<f64>) {
        let aimed = aim.map(|aim| format!("aim: at most {aim}")).unwrap_or_default();
        println!("{}", format!("{name:<56} {value:>10.2} {unit:<4} {aimed}").trim_end());
        self.0.push(Figure { name, value: rounded(value), unit, aim });
    }

    /// Median and the slowest of a hundred; of few, the slowest.
    pub fn tell_times(&mut self, name: &str, times: &[Duration]) {
        self.add_times(name, times, None);
    }

    /// As [`Self::tell_times`], with the most that the median should be.
    pub fn tell_times_aimed(&mut self, name: &str, times: &[Duration], aim: f64) {
        self.add_times(name, times, Some(aim));
    }

    fn add_times(&mut self, name: &str, times: &[Duration], aim: Option<f64>) {
        self.add(format!("{name} p50"), millis(at(times, 50)), "ms", aim);
        let (word, percent) = if times.len() < ENOUGH { ("max", 100) } else { ("p99", 99) };
        self.tell(format!("{name} {word}"), millis(at(times, percent)), "ms");
    }

    /// A figure that was told.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|figure| figure.name == name).map(|figure| figure.value)
    }
}

/// The time that this many percent of all do not exceed.
pub fn at(times: &[Duration], percent: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

/// Milliseconds.
pub fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let times: Vec<Duration> = (1..=200).rev().map(Duration::from_millis).collect();
        assert_eq!(at(&times, 50), Duration::from_millis(100));
        assert_eq!(at(&times, 99), Duration::from_millis(198));
        assert_eq!(at(&times[..1], 99), Duration::from_millis(200));
        assert_eq!(at(&[], 50), Duration::ZERO);
    }
}
