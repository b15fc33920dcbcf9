//! The loop that runs a call: slices of instructions, one deadline for all that the call began.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use stof::model::{Graph, SId};
use stof::runtime::instructions::Base;
use stof::runtime::proc::{ProcRes, Process};
use stof::runtime::{Error, Val, Variable};

use super::clock::{self, Clock};
use super::errors;
use super::shared::{CallState, Shared};
use crate::{CallError, Host, Limits};

/// Instructions between two looks at the clock.
const SLICE: i32 = 256;

/// What one call runs on.
pub(crate) struct Run<'a> {
    pub(crate) graph: &'a mut Graph,
    pub(crate) shared: &'a Shared,
    pub(crate) host: &'a mut dyn Host,
    pub(crate) clock: &'a mut Clock,
    pub(crate) limits: &'a Limits,
}

/// The processes of one call, each in one place.
#[derive(Default)]
struct Processes {
    ready: VecDeque<Process>,
    /// By the process that they wait for.
    waiting: HashMap<SId, Vec<Process>>,
    sleeping: Vec<(Instant, Process)>,
    ended: HashMap<SId, Result<Option<Variable>, Error>>,
    /// Of which somebody has been told how they ended.
    heard: HashSet<SId>,
    count: usize,
}

impl Run<'_> {
    /// Runs a process, and all that it begins, to the end.
    pub(crate) fn finish(&mut self, mut process: Process) -> Result<Val, CallError> {
        let main = process.env.pid.clone();
        self.prepare(&mut process);
        let mut processes = Processes { count: 1, ..Processes::default() };
        processes.ready.push_back(process);
        let mut slices = 0_u64;
        let slices_max = self.limits.instructions_max / SLICE.unsigned_abs() as u64;
        loop {
            self.check_clock()?;
            slices += 1;
            if slices > slices_max {
                let message = format!("ran more than {} instructions", self.limits.instructions_max);
                return Err(CallError::TooMuch { message });
            }
            processes.wake();
            let Some(process) = processes.ready.pop_front() else {
                if processes.sleeping.is_empty() {
                    break;
                }
                clock::wait(self.clock, processes.until_next());
                continue;
            };
            let sliced = self.slice(&mut processes, process, &main);
            self.hand_over_log();
            sliced?;
        }
        let ended = processes.ended.remove(&main);
        self.log_unheard(&processes);
        self.hand_over_log();
        match ended {
            Some(Ok(result)) => Ok(result.map(|result| result.get()).unwrap_or_default()),
            Some(Err(error)) => Err(errors::thrown(self.graph, self.limits, &error)),
            None => Err(CallError::Thrown { message: "the tool waits for something that never ends".to_owned() }),
        }
    }

    /// Gives the host what was printed, as it is printed: who does not come to an end has said it all the same.
    pub(crate) fn hand_over_log(&mut self) {
        let Some(printed) =
            self.shared.lock().call.as_mut().filter(|call| !call.log.is_empty()).map(CallState::take_log)
        else {
            return;
        };
        if !self.host.print(&printed)
            && let Some(call) = &mut self.shared.lock().call
        {
            call.log_taken -= printed.len();
            call.log.insert_str(0, &printed);
        }
    }

    /// An async function that failed and that nobody awaited leaves a line in the log.
    fn log_unheard(&self, processes: &Processes) {
        for (id, ended) in &processes.ended {
            if let (Err(error), false) = (ended, processes.heard.contains(id)) {
                let line = format!("an async function failed: {}", errors::thrown(self.graph, self.limits, error));
                if let Some(call) = &mut self.shared.lock().call {
                    call.print(&line, self.limits.log_bytes_max);
                }
            }
        }
    }

    fn check_clock(&self) -> Result<(), CallError> {
        if self.clock.is_over() {
            return Err(CallError::TimedOut { limit_ms: self.limits.call_time_max_ms });
        }
        Ok(())
    }

    /// A process has no clock of its own: there is one for the whole call.
    fn prepare(&mut self, process: &mut Process) {
        process.env.max_execution_time = None;
        process.env.max_call_stack_depth = self.limits.call_depth_max;
        if process.env.self_stack.is_empty() {
            process.env.self_stack.push(self.graph.ensure_main_root());
        }
    }

    /// Runs a process for a while and puts it where it belongs then.
    fn slice(&mut self, processes: &mut Processes, mut process: Process, main: &SId) -> Result<(), CallError> {
        process.env.yield_enabled = !processes.ready.is_empty() || !processes.sleeping.is_empty();
        match process.instructions.exec(&mut process.env, self.graph, SLICE) {
            Ok(ProcRes::More | ProcRes::Trace(_) | ProcRes::Peek(_)) => {
                if let Some(spawned) = process.env.spawn.take() {
                    self.spawn(processes, *spawned)?;
                }
                processes.ready.push_back(process);
            }
            Ok(ProcRes::Wait(awaited)) => self.wait_for(processes, process, awaited),
            Ok(ProcRes::SleepFor(duration)) => {
                // Longer than the call may run is until its end.
                let duration = duration.min(Duration::from_millis(self.limits.call_time_max_ms.saturating_mul(2)));
                processes.sleeping.push((Instant::now() + duration, process));
            }
            Ok(ProcRes::Sleep(_)) => {
                self.answer(&process.env.pid);
                processes.ready.push_front(process);
            }
            Ok(ProcRes::Done | ProcRes::Exit(_)) => {
                let result = process.env.stack.pop();
                processes.end(process, Ok(result));
            }
            Err(error) if &process.env.pid == main => {
                process.error = Some(error.clone());
                return Err(errors::located(self.graph, self.limits, &process, &error));
            }
            Err(error) => processes.end(process, Err(error)),
        }
        Ok(())
    }

    fn spawn(&mut self, processes: &mut Processes, mut spawned: Process) -> Result<(), CallError> {
        processes.count += 1;
        if processes.count > self.limits.processes_max {
            let message = format!("began more than {} async functions", self.limits.processes_max);
            return Err(CallError::TooMuch { message });
        }
        self.prepare(&mut spawned);
        processes.ready.push_back(spawned);
        Ok(())
    }

    fn wait_for(&mut self, processes: &mut Processes, mut process: Process, awaited: SId) {
        match processes.ended.get(&awaited) {
            Some(ended) => {
                resume(&mut process, ended);
                processes.heard.insert(awaited);
                processes.ready.push_front(process);
            }
            None => processes.waiting.entry(awaited).or_default().push(process),
        }
    }

    /// Has the host answer what the process asked, while the clock stands still.
    fn answer(&mut self, process: &SId) {
        let asked = self.shared.lock().call.as_mut().and_then(|call| call.asked.remove(process));
        let Some(asked) = asked else { return };
        let answer = {
            let host = &mut *self.host;
            self.clock.pause(|| host.grant(&asked.grant, asked.arguments))
        };
        if let Some(call) = &mut self.shared.lock().call {
            call.answers.insert(process.clone(), answer);
        }
    }
}

impl Processes {
    /// Moves those that have slept long enough.
    fn wake(&mut self) {
        if self.sleeping.is_empty() {
            return;
        }
        let now = Instant::now();
        for (at, process) in std::mem::take(&mut self.sleeping) {
            if at <= now {
                self.ready.push_back(process);
            } else {
                self.sleeping.push((at, process));
            }
        }
    }

    fn until_next(&self) -> Duration {
        let next = self.sleeping.iter().map(|(at, _)| *at).min();
        next.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()))
    }

    /// Keeps what a process came to and lets those go on that waited for it.
    fn end(&mut self, process: Process, ended: Result<Option<Variable>, Error>) {
        let id = process.env.pid.clone();
        drop(process);
        for mut waiting in self.waiting.remove(&id).unwrap_or_default() {
            resume(&mut waiting, &ended);
            self.heard.insert(id.clone());
            self.ready.push_back(waiting);
        }
        self.ended.insert(id, ended);
    }
}

/// Hands a process what it waited for.
fn resume(process: &mut Process, ended: &Result<Option<Variable>, Error>) {
    match ended {
        Ok(Some(result)) => process.env.stack.push(result.clone()),
        Ok(None) => {}
        Err(error) => {
            let error = Error::AwaitError(Box::new(error.clone()));
            process.instructions.instructions.push_front(Arc::new(Base::CtrlAwaitError(Box::new(error))));
        }
    }
}
