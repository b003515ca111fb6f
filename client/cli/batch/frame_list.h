// The frames of one `spex extract`, with their PSFs and outputs.
#ifndef SPEXD_CLIENT_CLI_BATCH_FRAME_LIST_H_
#define SPEXD_CLIENT_CLI_BATCH_FRAME_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/batch/frame_task.h"
#include "client/cli/flags/batch_products.h"
#include "client/cli/flags/job_flags.h"

namespace spexd::cli {

// The folders of the outputs. They are created if missing.
struct OutputFolders {
  std::string frames, models;  // models "": none
};

// The names of the flags or columns of the input files, for messages.
struct InputNames {
  const char* image = "--input";
  const char* psf = "--psf";
};

// Returns the canonical path of a file, which need not exist.
std::string Canonical(const std::string& path);

// Returns the name of the output for `input`: preproc-r0-1.fits.gz becomes PREFIX-r0-1.fits, and any other
// name.fits becomes PREFIX-name.fits.
std::string OutputName(const std::string& prefix, const std::string& input);

// Returns the task of one frame. `flags` has everything except its files. Errors as in MakeJob.
absl::StatusOr<FrameTask> MakeTask(JobFlags flags, const std::string& input, const std::string& psf,
                                   const OutputFolders& folders, const BatchProducts& products);

// Creates the folders of the outputs and checks them. InvalidArgument: a file would be written twice, or is
// an input. Other errors as in CheckWritable.
absl::Status PrepareOutputs(const std::vector<FrameTask>& tasks, const ProductInputs& inputs,
                            const InputNames& names);

// Returns a task for each of `inputs`, with the options in `flags`. `psfs`: one PSF for all, or one for each
// in the same order; cameras must match. InvalidArgument: the numbers do not match. Other errors as in
// MakeJob and PrepareOutputs.
absl::StatusOr<std::vector<FrameTask>> ListFrames(const JobFlags& flags,
                                                  const std::vector<std::string>& inputs,
                                                  const std::vector<std::string>& psfs,
                                                  const OutputFolders& folders,
                                                  const BatchProducts& products);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_BATCH_FRAME_LIST_H_
