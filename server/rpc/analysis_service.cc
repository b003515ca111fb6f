#include "server/rpc/analysis_service.h"

#include "server/analysis/analysis_job.h"

namespace spexd {

JobReactor* AnalysisService::Analyse(grpc::CallbackServerContext* context) {
  return JobCall<v1::AnalyseRequest>::Begin(
      parts_, "spexd.v1.Analysis/Analyse", context, &ids_,
      [this](const v1::AnalysisHeader& header, const Asker& asker, const JsonFields& log_fields) {
        JobStore* const store = detached_ != nullptr ? &detached_->store() : nullptr;
        return AskAnalysis(parts_, store, header, asker, log_fields);
      });
}

}  // namespace spexd
