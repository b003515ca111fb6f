// Running a job while Python goes on.
#ifndef SPEXD_PYTHON_NATIVE_CALL_H_
#define SPEXD_PYTHON_NATIVE_CALL_H_

#include <nanobind/nanobind.h>

#include "python/native/engine.h"

namespace spexd::python {

// Runs `job` without the GIL. In Python's main thread its signal handlers are run meanwhile; what one raises
// (Ctrl-C: KeyboardInterrupt) stops the job and is thrown, as is what `on_bundle(first_fibre, count, done,
// total)` raises (None: nobody listens). Else throws the errors of WarmEngine::Run. REQUIRES: the GIL.
Outcome CallEngine(WarmEngine* engine, const Job& job, const nanobind::object& on_bundle);

}  // namespace spexd::python

#endif  // SPEXD_PYTHON_NATIVE_CALL_H_
