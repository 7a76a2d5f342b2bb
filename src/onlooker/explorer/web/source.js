"use strict";
// Where the numbers come from: the explorer's server, or the page itself.
(() => {
  const MOST_KEPT = 96 * 1024 * 1024; // bytes of draws

  const RARE = 0.02; // of nominal steps that may be called odd

  async function ask(path) {
    const response = await fetch(path, { cache: "no-store" });
    if (response.ok) return response;
    let text = `${response.status}`;
    try {
      text = (await response.json()).error;
    } catch { /* an answer that is no JSON has no better words */ }
    const error = new Error(text);
    error.status = response.status;
    throw error;
  }

  class Live {
    live = true;
    // Runs, at once or (after: their versions) when there is news.
    async runs(after) {
      return (await ask(after ? `api/runs?after=${after.join(",")}` : "api/runs")).json();
    }
    async overview(run) {
      return (await ask(`api/runs/${run}/overview`)).json();
    }
    async at(run, state) {
      return (await ask(`api/runs/${run}/at?state=${[state].flat().join(",")}`)).json();
    }
    async compare(a, b) {
      return (await ask(`api/compare?a=${a}&b=${b}`)).json();
    }
    async block(run, epoch, chain, block) {
      const response = await ask(`api/runs/${run}/draws?epoch=${epoch}&chain=${chain}&block=${block}`);
      return new Uint16Array(await response.arrayBuffer());
    }
    frames(draws) {
      return draws.chains.map(() => ({ length: draws.n_draws, at: (k) => k }));
    }
  }

  async function unzipped(text) {
    const stream = new Blob([onlooker.bytes(text)]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).arrayBuffer();
  }

  class Embedded {
    live = false;
    constructor(data) {
      this.data = data;
    }
    async runs() {
      const ready = this.data.overview !== null;
      return this.data.runs.map((run) => ({ ...run, version: 1, changing: false, ready }));
    }
    async overview() {
      const text = new TextDecoder().decode(await unzipped(this.data.overview));
      return { version: 1, ...JSON.parse(text) };
    }
    // The draws inside, chain by chain, are a single block each.
    async block(run, epoch, chain) {
      this.every ??= new Uint16Array(await unzipped(this.data.draws));
      const rows = this.data.frames.map((frame, row) => [frame, row]).filter(([frame]) => frame[0] === chain);
      const n = this.every.length / this.data.frames.length;
      return this.every.slice(rows[0][1] * n, (rows[rows.length - 1][1] + 1) * n);
    }
    frames(draws) {
      return draws.chains.map((_, chain) => {
        const mine = this.data.frames.filter((frame) => frame[0] === chain).map((frame) => frame[1]);
        return { length: mine.length, at: (k) => mine[k] };
      });
    }
  }

  const COMPASS = ["N", "NNE", "NE", "ENE", "E", "ESE", "SE", "SSE", "S", "SSW", "SW", "WSW", "W", "WNW", "NW", "NNW"];
  const turned = (angle) => ((Math.round((angle * 180) / Math.PI) % 360) + 360) % 360;
  // As `findings.names.feature_text` has it.
  function featureText({ name, weight, log_unit }, columns, onEarth) {
    const [x, y] = columns;
    const own = (value) => (log_unit === null ? value / weight : log_unit * Math.expm1(value / weight));
    if (name !== "heading" || columns.length !== 2) {
      const unit = onEarth && ["speed", "previous step"].includes(name) ? "\u00a0km" : "";
      return `${name} ${columns.map((value) => onlooker.number(own(value))).join(", ")}${unit}`;
    }
    if (x === 0 && y === 0) return "no heading yet";
    if (onEarth) return `heading ${COMPASS[Math.round(turned(Math.atan2(x, y)) / 22.5) % 16]}`;
    return `heading ${turned(Math.atan2(y, x))}°`;
  }

  // A run as the page sees it: the overview with its arrays unpacked, and its draws as they come.
  class Run {
    constructor(source, number, overview) {
      this.source = source;
      this.number = number;
      Object.assign(this, overview);
      for (const name of ["reference", "membership", "policy", "spread", "node_moves"]) {
        this[name] = onlooker.unpack(overview[name]);
      }
      const unpacked = (part) => part && Object.fromEntries(Object.entries(part).map(
        ([key, value]) => [key, value && value.dtype ? onlooker.unpack(value) : value]));
      this.space = unpacked(overview.space);
      this.space.land = this.space.land.map(unpacked);
      this.paths = unpacked(overview.paths);
      this.steps = unpacked(overview.steps);
      this.at_nodes = unpacked(overview.at_nodes);
      this.left = onlooker.unpack(overview.data.left).values; // 0: no step was seen to start there
      this.nEnds = this.left.reduce((sum, left) => sum + (left === 0), 0);
      this.nNodes = this.draws.n_nodes;
      this.nActions = this.data.actions;
      this.frames = source.frames(this.draws);
      this.blockSize = source.live ? this.draws.block : Infinity;
      this.blocks = new Map();
      this.kept = 0;
    }
    get nSites() {
      return this.space.sites.shape[0];
    }
    place(site) {
      const d = this.space.sites.shape[1];
      return Array.from(this.space.sites.values.subarray(site * d, (site + 1) * d));
    }
    // What to ask the server about a site.
    stateOf(site) {
      return this.space.states ? this.space.states.values[site] : this.place(site);
    }
    stateText(site) {
      if (this.space.kind === "abstract") return `state ${this.stateOf(site)}`;
      const at = this.placeText(this.place(site));
      return this.space.kind === "grid" ? `state ${this.stateOf(site)} at ${at}` : at;
    }
    // Coordinates with as many digits as tell states apart; on Earth as degrees east and north.
    placeText(place) {
      const { decimals, meridian } = this.space;
      const features = this.space.features.map((one) => featureText(one, place.slice(one.first, one.end), meridian !== null));
      const parts = place.slice(0, features.length ? this.space.n_position : undefined).map((x, k) => {
        if (!decimals) return onlooker.number(x);
        const text = (value) => onlooker.fixed(value, decimals[k]);
        return meridian !== null && k < 2 ? onlooker.degrees(x, k, text) : text(x);
      });
      return `(${[parts.join(", "), features.join(", ")].filter(Boolean).join("; ")})`;
    }
    // A longitude as the map has it: within 180° of the middle.
    unwrapped(x) {
      const { meridian } = this.space;
      return meridian === null ? x : x - 360 * Math.floor((x - meridian + 180) / 360);
    }
    // Names of all nodes' clusters in a draw: at once if its block is here, else a promise.
    names(chain, index) {
      const number = this.blockSize === Infinity ? 0 : Math.floor(index / this.blockSize);
      const row = this.blockSize === Infinity ? index : index % this.blockSize;
      const cut = (block) => block.subarray(row * this.nNodes, (row + 1) * this.nNodes);
      const block = this.blocks.get(`${chain} ${number}`);
      if (block instanceof Uint16Array) return cut(block);
      return this.fetch(chain, number).then(cut);
    }
    fetch(chain, number) {
      const key = `${chain} ${number}`;
      if (this.blocks.has(key)) return Promise.resolve(this.blocks.get(key));
      const promise = this.source.block(this.number, this.epoch, chain, number).then((block) => {
        const reference = this.reference.values;
        for (let i = 0; i < block.length; i++) block[i] ^= reference[i % this.nNodes];
        this.blocks.set(key, block);
        this.kept += block.byteLength;
        this.forget(key);
        return block;
      });
      promise.catch(() => this.blocks.delete(key));
      this.blocks.set(key, promise);
      return promise;
    }
    forget(newest) {
      for (const [key, block] of this.blocks) {
        if (this.kept <= MOST_KEPT) return;
        if (key === newest || !(block instanceof Uint16Array)) continue;
        this.blocks.delete(key);
        this.kept -= block.byteLength;
      }
    }
    // Bring what lies around a draw, so that sliding does not wait.
    async prefetch(chain, index) {
      if (this.blockSize === Infinity) return;
      const here = Math.floor(index / this.blockSize);
      const last = Math.floor((this.frames[chain].length - 1) / this.blockSize);
      const room = Math.max(1, Math.floor(MOST_KEPT / (this.blockSize * this.nNodes * 2)) - 2);
      for (let away = 0; away <= Math.min(room, last); away++) {
        for (const number of new Set([here + away, here - away])) {
          if (number < 0 || number > last) continue;
          try {
            await this.fetch(chain, number);
          } catch {
            return; // the run has grown: its next overview brings a new epoch
          }
        }
      }
    }
    // Trajectories that were at the nodes nearest to a place, nearest first.
    nearest(place, site, count = 5) {
      if (!this.paths) return [];
      const visits = this.visits();
      const found = [];
      const told = new Set();
      const tell = (node, distance) => {
        for (const [trajectory, step] of visits[node]) {
          if (told.has(trajectory) || found.length >= count) continue;
          told.add(trajectory);
          found.push({ trajectory, step, distance });
        }
      };
      if (this.space.kind === "abstract") {
        if (site < this.nNodes) tell(site, 0);
        return found;
      }
      const distance = Float64Array.from({ length: this.nNodes }, (_, i) => this.distance(place, i));
      const order = Array.from(distance.keys()).sort((a, b) => distance[a] - distance[b]);
      for (const node of order.slice(0, 200)) tell(node, distance[node]);
      return found;
    }
    // The node nearest to a place, of which the first coordinates may do.
    nearestTo(place) {
      const d = this.space.sites.shape[1];
      let best = 0;
      let least = Infinity;
      for (let i = 0; i < this.nNodes; i++) {
        let sum = 0;
        for (let k = 0; k < place.length; k++) sum += (this.space.sites.values[i * d + k] - place[k]) ** 2;
        if (sum < least) [best, least] = [i, sum];
      }
      return best;
    }
    // A place with the coordinates that are missing, as of features: those of the nearest node.
    filled(place) {
      return [...place, ...this.place(this.nearestTo(place)).slice(place.length)];
    }
    // How far a node is from a place: km on Earth, else in units of the coordinates.
    distance(place, node) {
      const d = place.length;
      const { values } = this.space.sites;
      let sum = 0;
      if (this.space.meridian === null) {
        for (let k = 0; k < d; k++) sum += (values[node * d + k] - place[k]) ** 2;
        return Math.sqrt(sum);
      }
      const [east, south, lat, south2] = [place[0] - values[node * d], place[1] - values[node * d + 1], place[1], values[node * d + 1]].map((x) => (x * Math.PI) / 180);
      const half = Math.sin(south / 2) ** 2 + Math.cos(lat) * Math.cos(south2) * Math.sin(east / 2) ** 2;
      return 2 * onlooker.EARTH_RADIUS * Math.asin(Math.min(1, Math.sqrt(half)));
    }
    visits() {
      if (this.byNode) return this.byNode;
      this.byNode = Array.from({ length: this.nNodes }, () => []);
      const nodes = this.paths.nodes.values;
      const offsets = this.paths.offsets.values;
      for (let k = 0; k + 1 < offsets.length; k++) {
        for (let t = offsets[k]; t < offsets[k + 1]; t++) this.byNode[nodes[t]].push([k, t - offsets[k]]);
      }
      return this.byNode;
    }
    // What a trajectory is called: its name, and its number where there is none or others share it.
    called(k) {
      if (!this.paths.names) return String(k);
      if (!this.labels) {
        const times = new Map();
        for (const name of this.paths.names) times.set(name, (times.get(name) || 0) + 1);
        this.labels = this.paths.names.map((name, i) => (times.get(name) > 1 || name === "" ? `${name} (${i})`.trim() : name));
      }
      return this.labels[k];
    }
    // The trajectory that is called so, by its name or else by its number; null: there is none.
    calledSo(words) {
      const text = words.trim();
      const n = this.data.trajectories;
      if (this.paths.names) {
        const like = text.toLowerCase();
        const all = Array.from({ length: n }, (_, k) => k);
        const found = [(k) => this.called(k) === text, (k) => this.called(k).toLowerCase() === like, (k) => this.paths.names[k].toLowerCase() === like]
          .map((same) => all.find(same)).find((k) => k !== undefined);
        if (found !== undefined && text !== "") return found;
      }
      return /^\d+$/.test(text) && Number(text) < n ? Number(text) : null;
    }
    // Steps of one trajectory: its nodes, and what is known of its transitions.
    trajectory(k) {
      const offsets = this.paths.offsets.values;
      const [start, stop] = [offsets[k], offsets[k + 1]];
      const from = start - k; // each trajectory before has a transition less than states
      const cut = (packed) => Array.from(packed.values.subarray(from, from + stop - start - 1));
      return {
        nodes: Array.from(this.paths.nodes.values.subarray(start, stop)),
        ...(this.steps && { surprise: cut(this.steps.surprise), action: cut(this.steps.action), share: cut(this.steps.share) }),
        ...(this.steps && this.steps.p_value && { expected: cut(this.steps.expected), p_value: cut(this.steps.p_value) }),
      };
    }
    // When the state of a step was recorded and where it stands in the file, as far as is known.
    recorded(k, t) {
      const { times, clock, rows, offsets } = this.paths;
      const at = offsets.values[k] + t;
      const said = [];
      if (times) said.push(onlooker.timeText(times.values[at], clock));
      if (rows) said.push(`row ${rows.values[at]}`);
      return said.join(", ");
    }
    // Which steps of a trajectory are odd: rare among simulated ones, or else rare among all.
    odd({ surprise, p_value }) {
      return p_value ? p_value.map((p) => p <= RARE) : surprise.map((v) => v > this.steps.unusual);
    }
    // What a report knows of a node: the same that the server would answer.
    answer(node) {
      const a = this.nActions;
      const row = (packed, scale) => Array.from(packed.values.subarray(node * a, (node + 1) * a), (x) => x / scale);
      const width = this.at_nodes.shares.shape[1];
      const cut = (packed) => Array.from(packed.values.subarray(node * width, (node + 1) * width));
      const shares = cut(this.at_nodes.shares);
      return {
        state: this.stateOf(node), node, level: this.level, mean: row(this.policy, 1),
        low: row(this.at_nodes.low, 65535), high: row(this.at_nodes.high, 65535),
        candidates: cut(this.at_nodes.clusters).map((cluster, k) => ({ cluster, share: shares[k] / 65535 }))
          .filter((one) => one.share > 0),
      };
    }
  }

  onlooker.Run = Run;
  onlooker.source = () => {
    const data = JSON.parse(onlooker.byId("embedded").textContent);
    return data === null ? new Live() : new Embedded(data);
  };
})();
