// rotary-inspect: shows the rotation that a model's files describe. examples/inspect/inspection.hpp has what it works
// out, examples/inspect/rotary-inspect-plot what it draws.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "comparison.hpp"
#include "inspection.hpp"
#include "json.hpp"
#include "model.hpp"
#include "plot.hpp"
#include "text.hpp"

namespace {

struct command_line {
  std::string model, other, plot;
  std::optional<std::int64_t> context;
  std::optional<std::size_t> layer;
  bool json = false;
  inspect::reader_options reader;
};

/// A shell variable that is not set leaves '', which no option here takes for its absence.
const CLI::Validator not_empty(
    [](std::string& text) {
      return std::string(text.empty() ? "the value is empty; give one, or leave the option out" : "");
    },
    "", "not_empty");

/// Throws error, which CLI11 prints behind "--pairing: ".
rotary::pairing pairing_of(const std::string& name) {
  if (name == "split_half") return rotary::pairing::split_half;
  if (name == "interleaved") return rotary::pairing::interleaved;
  throw CLI::ValidationError("--pairing", "is " + name + "; it must be split_half or interleaved");
}

void add_options(CLI::App& app, command_line& to) {
  app.add_option("model", to.model, "config.json, a directory or pipe that holds one, or a GGUF file")
      ->required()
      ->check(not_empty)
      ->option_text("MODEL");
  app.add_option("--context", to.context,
                 "Length of the sequence to rotate; default: max_position_embeddings, with --compare the larger one")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->option_text("TOKENS");
  app.add_option("--layer", to.layer, "Show the type of this layer alone, counted from 0")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{65535}))
      ->option_text("NUMBER");
  app.add_option("--compare", to.other,
                 "A second model: which settings differ, and by which angles at the position --context")
      ->check(not_empty)
      ->option_text("MODEL");
  app.add_flag("--json", to.json, "Print everything, for programs");
  app.add_option("--plot", to.plot, "Draw wavelengths, decay of scores, and errors of float32 angles (.svg or .png)")
      ->check(not_empty)
      ->option_text("FILE");
  app.add_option_function<std::string>(
         "--pairing", [&to](const std::string& name) { to.reader.pairing = pairing_of(name); },
         "split_half or interleaved: for model types that are not known")
      ->option_text("PAIRING");
  app.add_option("--ignore-key", to.reader.ignored_keys,
                 "A key of config.json that does not bear on the rotation, though it looks so; may be repeated")
      ->take_all()
      ->expected(1)
      ->check(not_empty)
      ->option_text("KEY");
}

/// Throws where --plot could not be drawn, before anything is read.
void check(const command_line& line) {
  const auto ends_with = [&](const std::string& end) {
    return line.plot.size() > end.size() && line.plot.compare(line.plot.size() - end.size(), end.size(), end) == 0;
  };
  if (!line.plot.empty() && !ends_with(".svg") && !ends_with(".png")) {
    throw std::runtime_error("--plot is " + line.plot + "; it must end in .svg or .png.");
  }
}

/// Names of files and keys need not be UTF-8.
std::string dumped(const nlohmann::ordered_json& all, int indent) {
  return all.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

/// `all()` is what programs read, `text()` what people read.
template <class Json, class Text>
void show(const command_line& line, const char* argv0, const Json& all, const Text& text) {
  if (!line.plot.empty()) inspect::plot(dumped(all(), -1), line.plot, argv0);
  std::cout << (line.json ? dumped(all(), 1) + "\n" : text()) << std::flush;
  if (!std::cout) throw std::runtime_error("standard output could not be written. Is the disk full?");
}

void show_one(const command_line& line, const rotary::rope& model, const char* argv0) {
  const inspect::inspection one = inspect::inspect_rope(line.model, model, line.context, line.layer);
  show(
      line, argv0, [&] { return inspect::to_json(one); }, [&] { return inspect::report(one); });
}

void show_two(const command_line& line, const rotary::rope& first, const rotary::rope& second, const char* argv0) {
  const std::int64_t context =
      line.context.value_or(std::max(first.max_position_embeddings, second.max_position_embeddings));
  if (context == 0) {
    throw std::runtime_error("--context is missing; neither model states max_position_embeddings. Give --context " +
                             std::string("<tokens>, the position at which angles are compared."));
  }
  const inspect::inspection one = inspect::inspect_rope(line.model, first, context, line.layer);
  const inspect::inspection other = inspect::inspect_rope(line.other, second, context, line.layer);
  const std::vector<inspect::comparison> all = inspect::compare(one, other, context);
  show(
      line, argv0, [&] { return inspect::to_json(all, one, other, context); },
      [&] { return inspect::report(all, one, other, context); });
}

/// The library lets a list of keys serve many models; here it is for these, so one without effect is misspelt.
void check_ignored_keys(const command_line& line, const std::vector<rotary::rope>& models) {
  for (const std::string& key : line.reader.ignored_keys) {
    const auto is_it = [&](const std::string& path) {
      const std::string end = "." + key;
      return path == key || (path.size() > end.size() && path.compare(path.size() - end.size(), end.size(), end) == 0);
    };
    const auto had_it = [&](const rotary::rope& model) {
      return std::any_of(model.ignored_keys.begin(), model.ignored_keys.end(), is_it);
    };
    if (std::any_of(models.begin(), models.end(), had_it)) continue;
    throw std::runtime_error("--ignore-key is " + key + "; there is no such key of a config.json that would " +
                             "otherwise be left over. Correct it, or leave it out.");
  }
}

void run(const command_line& line, const char* argv0) {
  check(line);
  std::vector<rotary::rope> models = {inspect::read_model(line.model, line.reader)};
  if (!line.other.empty()) models.push_back(inspect::read_model(line.other, line.reader));
  check_ignored_keys(line, models);
  if (models.size() == 1) {
    show_one(line, models[0], argv0);
  } else {
    show_two(line, models[0], models[1], argv0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Shows the rotary position embedding that a model's files describe.", "rotary-inspect");
  command_line line;
  add_options(app, line);
  try {
    app.parse(argc, argv);
    run(line, argv[0]);
  } catch (const CLI::ParseError& refused) {
    return app.exit(refused) == 0 ? 0 : 2;
  } catch (const std::exception& refused) {
    std::cerr << "rotary-inspect: " << refused.what() << "\n";
    return 2;
  }
  return 0;
}
