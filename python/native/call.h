// Runs work while Python continues.
#ifndef SPEXD_PYTHON_NATIVE_CALL_H_
#define SPEXD_PYTHON_NATIVE_CALL_H_

#include <nanobind/nanobind.h>

#include <chrono>
#include <future>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

#include "python/native/engine.h"

namespace spexd::python {

// Interval at which the main thread asks Python to run signal handlers, which run only when it asks.
inline constexpr std::chrono::milliseconds kSignalPause(50);

// Waits until `running` is ready. An exception from a signal handler requests the stop, and is returned once
// `running` is ready. REQUIRES: the GIL, which is released meanwhile.
template <typename Result>
std::optional<nanobind::python_error> WaitFor(const std::future<Result>& running, std::stop_source* stop) {
  const nanobind::gil_scoped_release no_gil;
  while (running.wait_for(kSignalPause) != std::future_status::ready) {
    const nanobind::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() == 0) continue;
    std::optional<nanobind::python_error> raised(std::in_place);
    stop->request_stop();
    const nanobind::gil_scoped_release wait_without_gil;
    running.wait();
    return raised;
  }
  return std::nullopt;
}

// Runs `work(stop_token)` in another thread without the GIL and returns its result. In Python's main thread,
// signal handlers run meanwhile; an exception from one (Ctrl-C: KeyboardInterrupt) stops the work and is
// thrown. REQUIRES: the GIL.
template <typename Work>
std::invoke_result_t<const Work&, std::stop_token> RunWithSignals(const Work& work) {
  std::stop_source stop;
  auto running = std::async(std::launch::async, [&] { return work(stop.get_token()); });
  if (std::optional<nanobind::python_error> raised = WaitFor(running, &stop); raised.has_value()) {
    throw nanobind::python_error(*std::move(raised));
  }
  return running.get();
}

// Runs `job` as RunWithSignals does. An exception from `on_bundle(first_fibre, count, done, total)`, which
// may be None, also stops the job and is thrown. Otherwise throws the errors of WarmEngine::Run. REQUIRES:
// the GIL.
Outcome CallEngine(WarmEngine* engine, const Job& job, const nanobind::object& on_bundle);

}  // namespace spexd::python

#endif  // SPEXD_PYTHON_NATIVE_CALL_H_
