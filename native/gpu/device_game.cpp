// device_game.cpp -- records, starts and weights for a device; lanes to and from an environment.
#include "device_game.h"

#include <cstring>

#include "control_words.h"

namespace scanline::gpu {
namespace {

template <class T>
void append(std::vector<u8>& bytes, const T& value) {
  const u8* begin = reinterpret_cast<const u8*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof value);
}

}  // namespace

const char* refusal(const EnvSettings& s) {
  if (s.reset != ResetKind::kCached)
    return "reset='cached' only: each episode begins with a cached start";
  if (s.autoreset == Autoreset::kDisabled) return "autoreset 'same-step' or 'next-step' only";
  if (s.colour != FrameColour::kGrey || s.resize != Resize::kArea || s.pooling == Pooling::kRgb)
    return "observations of colour='grey', resize='area' and pooling='grey' or 'none' only";
  if (s.terminal_frame != TerminalFrame::kReal) return "terminal_frame='real' only";
  if (num_start_frames(s) > 0) return "stack_padding='zeros' or 'repeat' only";
  return nullptr;
}

DeviceGame::DeviceGame(const GameChoice& choice, const EnvSettings& settings) {
  if (const char* reason = refusal(settings))
    throw std::invalid_argument(std::string("Kernels take ") + reason + ".");
  shared_ = games_.share(choice, settings);
  const Observer& observer = *shared_.rules->observer;
  if (!observer.is_fused())
    throw std::invalid_argument(
        "Kernels take sizes of an observation that do not divide those of the picture only.");
  slot_ = std::make_unique<Slot<GameEnvironment>>(shared_.rules, shared_.starts, shared_.variant);
  const AreaPlan& plan = observer.plan();
  record_.rules = *shared_.rules;
  record_.row = *shared_.variant->row;
  record_.properties = shared_.variant->properties;
  record_.resize = {observer.first_row(), plan.target_height, plan.target_width,
                    plan.padded_width,    plan.taps_x,        plan.taps_y};
  record_.rom_bytes = shared_.variant->rom.image().size_bytes;
  record_.num_starts = static_cast<u32>(shared_.starts->size());
  std::memcpy(record_.grey, observer.values(), sizeof record_.grey);
}

std::vector<u8> DeviceGame::rom() const {
  const RomImage& image = shared_.variant->rom.image();
  std::vector<u8> bytes(image.bytes, image.bytes + image.size_bytes);
  bytes.resize(control_words_offset(image.size_bytes));
  for (const ControlWord& word : control_words(image)) append(bytes, word);
  return bytes;
}

std::vector<u8> DeviceGame::starts() const {
  std::vector<u8> bytes;
  for (const auto& start : *shared_.starts) {
    const auto record = std::make_unique<Start>(Start{start->env.console, start->env.state});
    append(bytes, *record);
  }
  return bytes;
}

std::vector<u8> DeviceGame::start_frames() const {
  std::vector<u8> bytes;
  for (const auto& start : *shared_.starts)
    bytes.insert(bytes.end(), start->stack.begin(), start->stack.end());
  return bytes;
}

std::vector<i32> DeviceGame::firsts() const {
  const AreaPlan& plan = shared_.rules->observer->plan();
  std::vector<i32> all(plan.first_x, plan.first_x + plan.padded_width);
  all.insert(all.end(), plan.first_y, plan.first_y + plan.target_height);
  return all;
}

std::vector<float> DeviceGame::weights() const {
  const AreaPlan& plan = shared_.rules->observer->plan();
  std::vector<float> all(plan.weight_x, plan.weight_x + plan.taps_x * plan.padded_width);
  all.insert(all.end(), plan.weight_y, plan.weight_y + plan.target_height * plan.taps_y);
  return all;
}

void DeviceGame::load(const Seed& seed, Lane& lane) {
  slot_->load(seed);
  export_to(lane);
}

std::vector<u8> DeviceGame::snapshot(const Lane& lane) {
  import_from(lane);
  return snapshot_of(*slot_);
}

std::string DeviceGame::restore(const u8* bytes, u64 size, Lane& lane) {
  const std::string reason = scanline::restore(*slot_, bytes, size);
  if (reason.empty()) export_to(lane);
  return reason;
}

void DeviceGame::export_to(Lane& lane) {
  auto& ale = slot_->env.ale();
  auto& console = ale.console();
  lane.machine = console.machine;
  lane.cartridge = console.cartridge();
  lane.ale = ale.state();
  lane.episode = slot_->episode.state;
  lane.random = ale.random().counter();
  lane.recent = console.recent_frames;
  lane.sight = {};
  std::memcpy(lane.pictures, console.pictures(), 2 * kPictureBytes);
  if (console.recent_frames.continued)
    std::memcpy(lane.pictures + 2 * kPictureBytes, console.held.data(), kPictureBytes);
}

// ALE's own generator is never drawn from where words come from counters: its seed is all of it.
void DeviceGame::import_from(const Lane& lane) {
  if (!slot_->env.is_loaded()) slot_->env.load(0, EnvStream{});
  auto& ale = slot_->env.ale();
  auto& console = ale.console();
  console.set_state({lane.machine, lane.cartridge});
  ale.state() = lane.ale;
  slot_->episode.state = lane.episode;
  ale.random() = EnvRandom(RandomStream::kCounter, lane.episode.ale_seed, lane.random.stream);
  ale.random().set_counter(lane.random);
  console.recent_frames = lane.recent;
  std::memcpy(console.pictures(), lane.pictures, 2 * kPictureBytes);
  if (lane.recent.continued) console.held.keep(lane.pictures + 2 * kPictureBytes);
}

}  // namespace scanline::gpu
