// Options from a file, the environment and flags, and their documentation.
#include "server/config/configuration.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/config/descriptor_budget.h"
#include "server/config/option_table.h"
#include "tests/support/build_paths.h"
#include "tests/support/matchers.h"
#include "tests/support/temp_folder.h"

namespace spexd {
namespace {

using Variables = std::map<std::string, std::string>;

ParsedCommandLine Parse(std::vector<std::string> arguments, const Variables& variables = {}) {
  arguments.insert(arguments.begin(), "spexd");
  std::vector<const char*> argv;
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  return ParseCommandLine(static_cast<int>(argv.size()), argv.data(), [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Options, AreReadFromTheCommandLine) {
  const auto parsed =
      Parse({"--listen", "unix:/tmp/s", "--http", "none", "--allow-root", "/", "--allow-root", "/tmp",
             "--max-running-jobs", "3", "--psf-cache-bytes", "2GiB", "--log-level", "error",
             "--log-format", "text"});
  ASSERT_FALSE(parsed.exit_code.has_value()) << parsed.text;
  EXPECT_EQ(parsed.options.allow_roots.size(), 2u);
  EXPECT_EQ(parsed.options.max_running_jobs, 3);
  EXPECT_EQ(parsed.options.psf_cache_bytes, int64_t{2} << 30);
  EXPECT_EQ(parsed.options.log_level, LogLevel::kError);
  EXPECT_EQ(parsed.options.log_format, LogFormat::kText);
  EXPECT_EQ(Parse({"--version"}).exit_code, 0);
  EXPECT_THAT(Parse({"--help"}).text, HasSubstr("--allow-root"));
}

TEST(Options, AreListedInPartByHelpAndAllByHelpAll) {
  const ParsedCommandLine common = Parse({"--help"}), all = Parse({"--help-all"});
  EXPECT_EQ(common.exit_code, 0);
  EXPECT_EQ(all.exit_code, 0);
  int shown = 0;
  for (const Option& option : OptionTable()) {
    const std::string line =
        absl::StrCat("\n  ", option.flag(), option.is_switch() ? "" : " " + option.value_name);
    EXPECT_THAT(all.text, HasSubstr(line));
    EXPECT_THAT(all.text, HasSubstr(absl::StrCat("\n\n", option.group, ":\n")));
    EXPECT_EQ(common.text.find(line) != std::string::npos, option.common) << option.name;
    EXPECT_EQ(option.value_name.empty(), option.is_switch()) << option.name;
    shown += option.common;
  }
  EXPECT_LE(shown, 22) << "--help is for the flags that most operators need";
  for (const absl::string_view line : absl::StrSplit(all.text, '\n')) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_THAT(common.text, HasSubstr("--help-all"));
}

TEST(Options, ThatAreMistypedNameTheOneThatWasMeant) {
  const auto slip = Parse({"--allow-rot", "/tmp"});
  EXPECT_EQ(slip.exit_code, 2);
  EXPECT_EQ(slip.text, "spexd: there is no flag --allow-rot; did you mean --allow-root?\n");
  EXPECT_EQ(Parse({"--colour=red"}).text, "spexd: there is no flag --colour; --help-all lists them\n");
}

TEST(Options, NameTheFlagTheValueAndTheLimit) {
  const std::vector<std::vector<std::string>> wrong = {{"--listen", "0.0.0.0:1"},
                                                       {"--listen", "localhost"},
                                                       {"--listen", "127.0.0.1:99999"},
                                                       {"--listen", "unix:"},
                                                       {"--http", "[::]:80"},
                                                       {"--http", "::1:80"},
                                                       {"--listen", "[[::1]]:80"},
                                                       {"--listen", "local host:80"},
                                                       {"--allow-root", "/no/such"},
                                                       {"--threads", "-1"},
                                                       {"--max-running-jobs", "-1"},
                                                       {"--max-queued-jobs", "-1"},
                                                       {"--max-upload-bytes", "0"},
                                                       {"--psf-cache-bytes", "-5"},
                                                       {"--grace-seconds", "nan"},
                                                       {"--stall-seconds", "0"},
                                                       {"--device", "tpu"},
                                                       {"--devices", "0,0"},
                                                       {"--device-memory-bytes", "-1"},
                                                       {"--jobs-per-device", "0"},
                                                       {"--log-level", "loud"},
                                                       {"--log-format", "xml"},
                                                       {"--max-workspace-bytes", "lots"},
                                                       {"--max-result-bytes", "1e30"},
                                                       {"--max-upload-total-bytes", "0"}};
  for (const auto& arguments : wrong) {
    const auto parsed = Parse(arguments);
    EXPECT_EQ(parsed.exit_code, 2) << arguments[0] << " " << arguments[1];
    EXPECT_THAT(parsed.text, HasSubstr(arguments[0])) << arguments[1];
  }
  EXPECT_EQ(Parse({"--no-such-flag"}).exit_code, 2);
  const auto both = Parse({"--device", "cpu", "--devices", "0"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.text, HasSubstr("--devices"));
  EXPECT_FALSE(Parse({"--listen", "0.0.0.0:1", "--insecure-any-address"}).exit_code.has_value());
  EXPECT_FALSE(Parse({"--listen", "[::1]:0", "--http", "localhost:0"}).exit_code.has_value());
}

TEST(Options, ChooseTheEngineAndItsDevices) {
  const auto parsed = Parse({"--device", "cuda", "--devices", "2,0", "--device-memory-bytes", "8GiB",
                             "--jobs-per-device", "6", "--threads", "3"});
  ASSERT_FALSE(parsed.exit_code.has_value()) << parsed.text;
  const EngineChoice& engine = parsed.options.engine;
  EXPECT_EQ(engine.device, "cuda");
  EXPECT_THAT(engine.devices, ElementsAre(2, 0));
  EXPECT_EQ(engine.device_memory_bytes, int64_t{8} << 30);
  EXPECT_EQ(engine.jobs_per_device, 6);
  EXPECT_EQ(engine.threads, 3);
  EXPECT_EQ(Parse({}).options.engine.device, "auto");
}

// A folder for the files that a test writes.
class ConfigurationTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& text) {
    testing::WriteBytes(file_, text);
    return file_;
  }
  testing::TempFolder folder_;
  const std::string file_ = folder_ / "spexd.conf";
};

TEST_F(ConfigurationTest, TakesFlagsBeforeTheEnvironmentBeforeTheFile) {
  Write("# a comment\n\n  max-queued-jobs = 7\nstall-seconds=8\n\tgrace-seconds =\t9\n");
  const Variables variables = {
      {"SPEXD_CONFIG", file_}, {"SPEXD_STALL_SECONDS", "80"}, {"SPEXD_GRACE_SECONDS", "90"}};
  const auto parsed = Parse({"--grace-seconds", "900"}, variables);
  ASSERT_FALSE(parsed.exit_code.has_value()) << parsed.text;
  EXPECT_EQ(parsed.options.max_queued_jobs, 7);
  EXPECT_EQ(parsed.options.stall_seconds, 80);
  EXPECT_EQ(parsed.options.grace_seconds, 900);
  EXPECT_EQ(Parse({"--config", Write("max-queued-jobs = 6\n")}, {}).options.max_queued_jobs, 6);
}

TEST_F(ConfigurationTest, ReadsListsAndSwitches) {
  Write(
      "allow-root = /\nallow-root = /tmp\ninsecure-any-address = true\nlisten = 0.0.0.0:1\ndevices = 1,0\n");
  const auto file = Parse({"--config", file_});
  ASSERT_FALSE(file.exit_code.has_value()) << file.text;
  EXPECT_THAT(file.options.allow_roots, ElementsAre("/", "/tmp"));
  EXPECT_THAT(file.options.engine.devices, ElementsAre(1, 0));
  EXPECT_TRUE(file.options.insecure_any_address);
  const auto variable = Parse({"--config", file_}, {{"SPEXD_ALLOW_ROOT", "/usr:/var"}});
  EXPECT_THAT(variable.options.allow_roots, ElementsAre("/usr", "/var"));
  const auto flag = Parse({"--config", file_, "--allow-root", "/etc", "--devices", "all"});
  EXPECT_THAT(flag.options.allow_roots, ElementsAre("/etc"));
  EXPECT_THAT(flag.options.engine.devices, IsEmpty());
}

TEST_F(ConfigurationTest, NamesFileLineKeyValueAndLimit) {
  const auto refused = [&](const std::string& text, const std::string& message) {
    const auto parsed = Parse({"--config", Write(text)});
    EXPECT_EQ(parsed.exit_code, 2);
    EXPECT_THAT(parsed.text, StartsWith(absl::StrCat("spexd: ", file_, message)));
  };
  refused("\nmax-queued-jobs = 5000\n", ":2: max-queued-jobs is 5000, must be 0 to 2000\n");
  refused("max-queued-jobs = many\n", ":1: max-queued-jobs is \"many\", must be a whole number, 0 to 2000\n");
  refused("max-queued-jobs =\n", ":1: max-queued-jobs is \"\", must be a whole number, 0 to 2000\n");
  refused("stall-seconds = nan\n", ":1: stall-seconds is nan, must be 1 to 86400\n");
  refused("psf-cache-bytes = 2 parsec\n",
          ":1: psf-cache-bytes is \"2 parsec\", must be a count of bytes such as 2GiB, 0 to 1e15\n");
  refused("log-level = loud\n", ":1: log-level is \"loud\", must be debug, info, warning or error\n");
  refused("insecure-any-address = yes\n", ":1: insecure-any-address is \"yes\", must be true or false\n");
  refused("listen = 0.0.0.0:1\n", ":1: listen \"0.0.0.0:1\" is not a loopback address");
  refused("allow-root = /no/such\n", ":1: allow-root \"/no/such\" is not a folder\n");
  refused("colour = red\n", ":1: there is no option \"colour\"\n");
  refused("just words\n", ":1: \"just words\" is not \"key = value\"\n");
  refused("log_level = error\n", ":1: there is no option \"log_level\"; did you mean log-level?\n");
  refused("\x1b[2J = red\n", ":1: there is no option \"\\033[2J\"\n");
  refused("http = \x1b[2J\n", ":1: http is \"\\033[2J\", must be without control characters\n");
  refused("http = " + std::string(1025, 'x') + "\n", ":1: http has 1025 bytes, must have at most 1024\n");
  refused(std::string(1000, 'x') + "\n",
          absl::StrCat(":1: \"", std::string(200, 'x'), "...\" is not \"key = value\"\n"));
  refused("http = none\n\nhttp = none\n",
          absl::StrCat(":3: http is set again, first at ", file_, ":1: http\n"));
}

TEST_F(ConfigurationTest, NamesTheVariableAndTheFile) {
  EXPECT_EQ(Parse({}, {{"SPEXD_THREADS", "-2"}}).text, "spexd: SPEXD_THREADS is -2, must be 0 to 1024\n");
  EXPECT_EQ(Parse({"--config", folder_ / "none"}).text,
            absl::StrCat("spexd: --config \"", folder_ / "none", "\" cannot be read\n"));
  EXPECT_THAT(Parse({"--config", Write(std::string((1 << 20) + 1, '#'))}).text,
              HasSubstr("has more than 1048576 bytes"));
}

TEST_F(ConfigurationTest, PrintsAFileThatSaysTheSame) {
  const std::vector<std::string> flags = absl::StrSplit(
      "--max-queued-jobs 5 --allow-root / --allow-root /tmp --psf-cache-bytes 3GiB --devices 1,0 --http none "
      "--log-level error --grace-seconds 0.30000000000000004",
      ' ');
  std::vector<std::string> printing = flags;
  printing.push_back("--print-config");
  const auto printed = Parse(printing);
  EXPECT_EQ(printed.exit_code, 0);
  EXPECT_THAT(printed.text, HasSubstr("# from --max-queued-jobs\nmax-queued-jobs = 5\n"));
  EXPECT_THAT(printed.text, HasSubstr("# default\nstall-seconds = 300\n"));
  EXPECT_THAT(printed.text, HasSubstr("psf-cache-bytes = 3GiB\n"));
  const auto again = Parse({"--config", Write(printed.text)});
  ASSERT_FALSE(again.exit_code.has_value()) << again.text;
  for (const Option& option : OptionTable()) {
    EXPECT_EQ(OptionTexts(option, again.options), OptionTexts(option, Parse(flags).options)) << option.name;
  }
  EXPECT_EQ(again.options.grace_seconds, 0.30000000000000004);
}

TEST(Options, ServeOtherMachinesWithTlsAndAuthentication) {
  const auto parse = [](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"--listen", "0.0.0.0:1"});
    return Parse(flags);
  };
  const std::vector<std::string> tls = {"--tls-certificate", "c.pem", "--tls-private-key", "k.pem"};
  const auto with = [&](const std::string& flag) {
    std::vector<std::string> flags = tls;
    flags.insert(flags.end(), {flag, "file"});
    return parse(flags);
  };
  EXPECT_THAT(parse({}).text, HasSubstr("--tls-certificate"));
  EXPECT_THAT(parse(tls).text, HasSubstr("--identities"));
  EXPECT_FALSE(with("--tls-client-ca").exit_code.has_value());
  EXPECT_FALSE(with("--identities").exit_code.has_value());
  EXPECT_THAT(parse({"--identities", "file"}).text, HasSubstr("--tls-certificate"));
  EXPECT_THAT(Parse({"--tls-certificate", "c.pem"}).text,
              HasSubstr("--tls-private-key must be given together"));
  EXPECT_THAT(Parse({"--tls-client-ca", "a.pem"}).text, HasSubstr("--tls-client-ca needs --tls-certificate"));
  EXPECT_THAT(Parse({"--listen", "unix:/tmp/s", "--tls-certificate", "c", "--tls-private-key", "k"}).text,
              HasSubstr("takes no TLS"));
}

TEST(Options, TellWhichOnesNeedARestart) {
  ServerOptions from, to;
  to.log_level = LogLevel::kDebug;
  to.identities = "other";
  EXPECT_THAT(NeedRestart(from, to), IsEmpty());
  to.listen = "127.0.0.1:1";
  to.engine.threads = 3;
  EXPECT_THAT(NeedRestart(from, to), ElementsAre("--listen", "--threads"));
}

TEST(DescriptorBudget, LeavesEachPortItsShareAndTheJobsAReserve) {
  const auto shares = [](int64_t descriptors, int jobs) {
    const PortShares both = ShareDescriptors(descriptors, jobs);
    return std::pair(both.grpc, both.http);
  };
  EXPECT_EQ(shares(256, 2), std::pair(96, 32));
  EXPECT_EQ(shares(1024, 2), std::pair(660, 220));
  EXPECT_EQ(shares(1048576, 256), std::pair(1046144, 256));
  EXPECT_EQ(shares(1024, 256), std::pair(384, 128)) << "half of all, however many jobs";
  EXPECT_EQ(shares(2, 2), std::pair(1, 1));
  for (int64_t descriptors = 4; descriptors < 100000; descriptors += 7) {
    const PortShares both = ShareDescriptors(descriptors, 16);
    ASSERT_LE(both.grpc + both.http, descriptors - std::min<int64_t>(descriptors / 2, 256)) << descriptors;
  }
}

// Compares the table in docs/spexd.md with the definitions. If this fails, copy what it expects into the
// document.
TEST(Options, AreDocumentedAsTheyAre) {
  std::string table, group;
  for (const Option& option : OptionTable()) {
    if (option.group != group) absl::StrAppend(&table, "| **", option.group, "** | | | |\n");
    group = option.group;
    const std::string standard = absl::StrJoin(OptionTexts(option, ServerOptions()), ":");
    absl::StrAppend(&table, "| `", option.flag(), option.is_switch() ? "" : " " + option.value_name, "` | ",
                    standard.empty() ? "" : absl::StrCat("`", standard, "` "), "| ", option.limits(),
                    option.limits().empty() ? "" : " ", "| ", option.help, " |\n");
  }
  const std::string readme = testing::ReadBytes(testing::SourceFolder() + "/docs/spexd.md");
  EXPECT_NE(readme.find("| flag | default | limits | meaning |\n|---|---|---|---|\n" + table + "\n"),
            std::string::npos)
      << "docs/spexd.md lacks this table:\n"
      << table;
}

}  // namespace
}  // namespace spexd
