#include "python/native/call.h"

#include <functional>
#include <optional>
#include <stop_token>
#include <utility>

#include "python/native/errors.h"

namespace nb = nanobind;

namespace spexd::python {
namespace {

// Calls `on_bundle` from the engine's threads, and keeps the exception that it raises.
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

}  // namespace

Outcome CallEngine(WarmEngine* engine, const Job& job, const nb::object& on_bundle) {
  Listener listener(on_bundle);
  BundleListener heard;
  if (!on_bundle.is_none()) heard = std::ref(listener);
  absl::StatusOr<Outcome> outcome =
      RunWithSignals([&](const std::stop_token& stop) { return engine->Run(job, heard, stop); });
  if (listener.raised().has_value()) throw nb::python_error(*std::move(listener.raised()));
  return ValueOrRaise(std::move(outcome));
}

}  // namespace spexd::python
