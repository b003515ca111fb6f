// The frames of one `spex extract`: which PSF each is extracted with, and which files it is written to.
#ifndef SPEXD_CLIENT_CLI_BATCH_FRAME_LIST_H_
#define SPEXD_CLIENT_CLI_BATCH_FRAME_LIST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/batch/frame_task.h"
#include "client/cli/flags/batch_products.h"
#include "client/cli/flags/job_flags.h"

namespace spexd::cli {

// Where the files go; they are made if missing.
struct OutputFolders {
  std::string frames, models;  // models "": none
};

// What messages call the flags or columns that name the files to be read.
struct InputNames {
  const char* image = "--input";
  const char* psf = "--psf";
};

// One name for all paths of a file, there or not.
std::string Canonical(const std::string& path);

// Name of the file that comes of `input`: preproc-r0-1.fits.gz becomes PREFIX-r0-1.fits, any other name.fits
// PREFIX-name.fits.
std::string OutputName(const std::string& prefix, const std::string& input);

// The task of one frame, as `flags` describe it but for its files. Errors as MakeJob.
absl::StatusOr<FrameTask> MakeTask(JobFlags flags, const std::string& input, const std::string& psf,
                                   const OutputFolders& folders, const BatchProducts& products);

// Makes the folders of the files to be written. InvalidArgument if a file would be written twice or is read;
// otherwise the errors of CheckWritable.
absl::Status PrepareOutputs(const std::vector<FrameTask>& tasks, const ProductInputs& inputs,
                            const InputNames& names);

// One task for each of `inputs`, as `flags` describe it. `psfs` is one for all, or one for each in the same
// order; the cameras must match. InvalidArgument if their numbers do not fit; otherwise the errors of MakeJob
// and PrepareOutputs.
absl::StatusOr<std::vector<FrameTask>> ListFrames(const JobFlags& flags,
                                                  const std::vector<std::string>& inputs,
                                                  const std::vector<std::string>& psfs,
                                                  const OutputFolders& folders,
                                                  const BatchProducts& products);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_BATCH_FRAME_LIST_H_
