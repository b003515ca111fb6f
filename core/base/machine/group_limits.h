// Limits of the control group (version 2) in which a process runs, such as that of a container, a pod or a
// systemd unit.
#ifndef SPEXD_CORE_BASE_MACHINE_GROUP_LIMITS_H_
#define SPEXD_CORE_BASE_MACHINE_GROUP_LIMITS_H_

#include <filesystem>
#include <optional>
#include <string>

namespace spexd {

// The lowest limit of this process's group and the groups that contain it; empty if there is none. `file`:
// "memory.max" for bytes, or "cpu.max" for CPUs (a fraction is possible).
std::optional<double> GroupLimit(const std::string& file);

// The same limit for the group that `membership`, the text of /proc/self/cgroup, names. `mount`: the folder
// in which the file system of control groups is mounted.
std::optional<double> GroupLimit(const std::string& file, const std::string& membership,
                                 const std::filesystem::path& mount);

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_MACHINE_GROUP_LIMITS_H_
