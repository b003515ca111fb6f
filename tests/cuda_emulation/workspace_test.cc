// Device memory of whole frames, from the layout and the kernels' scratch. Nothing is computed.
#include <cstdint>
#include <vector>

#include "cuda/plan/extract_plan.h"
#include "cuda/plan/job_shape.h"
#include "cuda/plan/psf_shape.h"
#include "cuda/runtime/pipeline.h"
#include "gtest/gtest.h"

namespace spexd::cuda {
namespace {

// Returns the bytes for a frame of 500 fibres between 5760 and 7620 Angstrom. `reach`: that of the r camera's
// PSF.
int64_t BytesOfFrame(double step, int reach) {
  PsfShape shape;
  shape.fibres = 500;
  shape.pad = 12;
  shape.bins = static_cast<int>(1860 / step) + 1 + 2 * shape.pad;
  shape.step = step;
  shape.ccd_rows = 4128;
  shape.ccd_columns = 4114;
  shape.stamp = {CentredAxis(8), CentredAxis(5)};
  shape.bundle_size = 25;
  const std::vector<BundleFacts> facts(static_cast<size_t>(shape.bundles()), {reach, 2, 0, 203});
  JobShape job;
  job.bundles = shape.bundles();
  job.float32 = true;
  return WorkspaceBytes(MakeExtractPlan(shape, facts, 1, {}), job);
}

// Eight frames in flight and their PSF fit into a GPU of 48 GB.
TEST(Workspace, OfAFrameStaysBelowThreeGigabytes) { EXPECT_LT(BytesOfFrame(0.8, 9), 3'000'000'000); }

TEST(Workspace, OfAFineFrameStaysBelowTwentyNineGigabytes) {
  EXPECT_LT(BytesOfFrame(0.4, 18), 29'000'000'000);
}

}  // namespace
}  // namespace spexd::cuda
