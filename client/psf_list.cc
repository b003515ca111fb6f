#include "client/psf_list.h"

#include "core/base/status_macros.h"

namespace spexd::client {

absl::StatusOr<v1::ListPsfsResponse> ListAllPsfs(Connection* connection, Connection::Deadline deadline) {
  return ListWarm(connection, v1::WARM_KIND_PSF, deadline);
}

absl::StatusOr<v1::ListPsfsResponse> ListWarm(Connection* connection, v1::WarmKind kind,
                                              Connection::Deadline deadline) {
  v1::ListPsfsResponse all;
  v1::ListPsfsRequest request;
  request.set_kind(kind);
  do {
    SPEXD_ASSIGN_OR_RETURN(v1::ListPsfsResponse page, connection->ListPsfs(request, deadline));
    request.set_page_token(page.next_page_token());
    all.MergeFrom(page);
  } while (!request.page_token().empty());
  all.clear_next_page_token();
  return all;
}

absl::StatusOr<v1::ListPsfsResponse> ListAllWarm(Connection* connection, Connection::Deadline deadline) {
  v1::ListPsfsResponse all;
  for (const v1::WarmKind kind : kWarmKinds) {
    SPEXD_ASSIGN_OR_RETURN(const v1::ListPsfsResponse some, ListWarm(connection, kind, deadline));
    all.MergeFrom(some);
  }
  all.set_total(static_cast<uint64_t>(all.psfs_size()));
  return all;
}

}  // namespace spexd::client
