#include "python/native/call.h"

#include <chrono>
#include <future>
#include <optional>
#include <stop_token>
#include <utility>

#include "python/native/errors.h"

namespace nb = nanobind;

namespace spexd::python {
namespace {

// Python runs signal handlers only when the main thread asks for it, so it asks so often.
constexpr std::chrono::milliseconds kSignalPause(50);

// Calls `on_bundle` from the engine's threads, and keeps what it raises.
class Listener {
 public:
  explicit Listener(const nb::object& on_bundle) : on_bundle_(on_bundle) {}

  absl::Status operator()(FibreRange fibres, int done, int total) {
    const nb::gil_scoped_acquire gil;
    try {
      on_bundle_(fibres.first, fibres.count, done, total);
      return absl::OkStatus();
    } catch (nb::python_error& error) {
      raised_.emplace(std::move(error));
      return absl::CancelledError("on_bundle raised an exception");
    }
  }
  std::optional<nb::python_error>& raised() { return raised_; }

 private:
  const nb::object& on_bundle_;
  std::optional<nb::python_error> raised_;
};

// Waits for the job. Returns what a signal handler raised meanwhile, after a stop of the job.
std::optional<nb::python_error> WaitFor(const std::future<absl::StatusOr<Outcome>>& job,
                                        std::stop_source* stop) {
  const nb::gil_scoped_release no_gil;
  while (job.wait_for(kSignalPause) != std::future_status::ready) {
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() == 0) continue;
    std::optional<nb::python_error> raised(std::in_place);
    stop->request_stop();
    const nb::gil_scoped_release wait_without_gil;
    job.wait();
    return raised;
  }
  return std::nullopt;
}

}  // namespace

Outcome CallEngine(WarmEngine* engine, const Job& job, const nb::object& on_bundle) {
  Listener listener(on_bundle);
  BundleListener heard;
  if (!on_bundle.is_none()) heard = std::ref(listener);
  std::stop_source stop;
  std::future<absl::StatusOr<Outcome>> running =
      std::async(std::launch::async, [&] { return engine->Run(job, heard, stop.get_token()); });
  if (std::optional<nb::python_error> raised = WaitFor(running, &stop); raised.has_value()) {
    throw nb::python_error(*std::move(raised));
  }
  absl::StatusOr<Outcome> outcome = running.get();
  if (listener.raised().has_value()) throw nb::python_error(*std::move(listener.raised()));
  return ValueOrRaise(std::move(outcome));
}

}  // namespace spexd::python
