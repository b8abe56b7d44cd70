// What runs when under two policies, the queue and the use of the machine: one time axis for all, to zoom and to pan.
(() => {
  const DAY = 86400;
  const STEPS = [1, 5, 15, 60, 300, 900, 3600, 10800, 21600, 43200, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 91 * DAY, 365 * DAY];
  const GANTT = 110, CURVE = 50, GAP = 20, LEFT = 46, RIGHT = 8;
  const HEIGHT = 2 * (GANTT + GAP) + 2 * (CURVE + GAP) + 20;

  const lasts = (s) => (s >= 2 * DAY ? `${(s / DAY).toFixed(1)} d` : s >= 7200 ? `${(s / 3600).toFixed(1)} h` : s >= 120 ? `${(s / 60).toFixed(1)} min` : `${Math.round(s)} s`);

  const unpack = async (head) => {
    const bytes = Uint8Array.from(atob(head.data), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const raw = new Uint8Array(await new Response(stream).arrayBuffer());
    let at = 0;
    // Bytes of equal weight stand together.
    const column = (n) => {
      const out = new Int32Array(n);
      for (let k = 0; k < 4; k++) for (let i = 0; i < n; i++) out[i] |= raw[at + k * n + i] << (8 * k);
      at += 4 * n;
      return out;
    };
    const summed = (n) => column(n).map(((sum) => (step) => (sum += step))(0));
    const jobs = { submit: summed(head.jobs), processors: column(head.jobs), id: summed(head.jobs) };
    jobs.queued = prefix(jobs.submit, null);
    const schedules = head.policies.map((name, k) => {
      const wait = column(head.jobs), run = column(head.jobs), n = head.rectangles[k];
      const start = wait.map((w, i) => jobs.submit[i] + w);
      const end = start.map((s, i) => s + run[i]);
      return { name, wait, run, start, end, row: summed(n), low: column(n), more: column(n) };
    });
    return { ...head, ...jobs, schedules };
  };

  // For integrals over time of how many have begun: times in order, and the sums of weights and of weight x time.
  const prefix = (times, weights) => {
    const order = Uint32Array.from(times, (_, i) => i).sort((a, b) => times[a] - times[b]);
    const at = Float64Array.from(order, (i) => times[i]);
    const sum = new Float64Array(at.length + 1), moment = new Float64Array(at.length + 1);
    order.forEach((i, k) => {
      const weight = weights ? weights[i] : 1;
      sum[k + 1] = sum[k] + weight;
      moment[k + 1] = moment[k] + weight * at[k];
    });
    return (t) => {
      let low = 0, high = at.length;
      while (low < high) { const middle = (low + high) >> 1; if (at[middle] <= t) low = middle + 1; else high = middle; }
      return sum[low] * t - moment[low];
    };
  };
  const curves = (data, one) => {
    if (!one.use) {
      const begun = prefix(one.start, data.processors), ended = prefix(one.end, data.processors), started = prefix(one.start, null);
      one.use = (a, b) => (begun(b) - begun(a) - ended(b) + ended(a)) / (b - a) / data.machine * 100;
      one.queue = (a, b) => (data.queued(b) - data.queued(a) - started(b) + started(a)) / (b - a);
    }
    return one;
  };

  const chart = async (figure) => {
    const data = await unpack(JSON.parse(figure.querySelector(".packed").textContent));
    const canvas = figure.querySelector("canvas"), status = figure.querySelector(".status"), context = canvas.getContext("2d");
    const tip = document.querySelector(".tip");
    const last = data.schedules.reduce((most, one) => one.end.reduce((a, b) => (a > b ? a : b), most), 1);
    const selects = [...figure.querySelectorAll("select")];
    const wanted = figure.dataset.chosen, second = data.policies.indexOf(wanted);
    selects.forEach((select, k) => {
      data.policies.forEach((name, i) => select.add(new Option(name === wanted ? `${name} (chosen)` : name, i)));
      select.value = k ? (second > 0 ? second : Math.min(1, data.policies.length - 1)) : 0;
      select.addEventListener("change", () => draw());
    });
    let [from, to] = data.view[1] > data.view[0] ? data.view : [0, last];
    let width = 0, scaleY = () => 0;
    const shown = () => selects.map((select) => curves(data, data.schedules[Number(select.value)]));
    const x = (t) => LEFT + (t - from) / (to - from) * (width - LEFT - RIGHT);
    const time = (px) => from + (px - LEFT) / (width - LEFT - RIGHT) * (to - from);
    const clock = (t) => (data.unix === null ? since(t, 60) : new Date((data.unix + t) * 1000).toISOString().slice(0, 16).replace("T", " "));

    const move = (a, b) => {
      const length = Math.min(Math.max(b - a, 60), last * 1.05 + 60);
      from = Math.min(Math.max(a + (b - a - length) / 2, -0.02 * last), Math.max(1.02 * last - length, -0.02 * last));
      to = from + length;
      draw();
    };
    const zoom = (factor, at = (from + to) / 2) => move(at - (at - from) * factor, at + (to - at) * factor);
    const pan = (share) => move(from + share * (to - from), to + share * (to - from));

    const draw = () => {
      const css = getComputedStyle(document.documentElement), colour = (name) => css.getPropertyValue(`--${name}`).trim();
      const ratio = window.devicePixelRatio || 1;
      width = canvas.clientWidth;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(HEIGHT * ratio);
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, width, HEIGHT);
      context.font = "11px system-ui, sans-serif";
      const pair = shown(), inks = [colour("first"), colour("second")];
      scaleY = (k) => 16 + k * (GANTT + GAP);
      axis(colour("line"), colour("soft"));
      pair.forEach((one, k) => {
        const top = scaleY(k), other = pair[1 - k];
        frame(top, GANTT, `${one.name}${one.name === wanted ? " (chosen)" : ""}: processors`, data.machine, colour, inks[k]);
        bars(one, other, top, colour);
      });
      const below = scaleY(2), lower = below + CURVE + GAP;
      line(pair, "queue", below, "jobs in the queue", colour, inks);
      line(pair, "use", lower, "machine in use (%)", colour, inks, 100);
      const words = pair.map((one) => `${one.name}: ${one.use(from, to).toFixed(0)} % in use, ${one.queue(from, to).toFixed(1)} jobs wait on average`);
      const part = data.of > data.jobs ? ` Of ${data.of} jobs ${data.jobs} are here.` : "";
      const text = `${lasts(to - from)} from ${clock(from)}. ${[...new Set(words)].join("; ")}.${part}`;
      status.textContent = text;
      canvas.setAttribute("aria-label", `Schedules over time. ${text}`);
    };
    // Without a date: days from 1, as in other tables, and hours since the first job.
    const since = (t, step) => {
      const at = Math.round(t), day = Math.floor(at / DAY) + 1, left = at - (day - 1) * DAY, two = (n) => String(n).padStart(2, "0");
      const seconds = step % 60 ? `:${two(left % 60)}` : "";
      return step >= DAY ? `day ${day}` : `day ${day}, ${two(Math.floor(left / 3600))}:${two(Math.floor(left / 60) % 60)}${seconds}`;
    };
    const axis = (grid, ink) => {
      const least = (to - from) / Math.max(2, (width - LEFT) / 110), step = STEPS.find((s) => s >= least) ?? 365 * DAY * Math.ceil(least / (365 * DAY));
      const offset = data.unix === null ? 0 : data.unix % step;
      for (let t = Math.ceil((from + offset) / step) * step - offset; t < to; t += step) {
        context.fillStyle = grid;
        context.fillRect(Math.round(x(t)), 16, 1, HEIGHT - 36);
        context.fillStyle = ink;
        const words = data.unix === null ? since(t, step) : clock(t).slice(step >= DAY ? 0 : 5, step >= DAY ? 10 : 16);
        if (x(t) + 3 + context.measureText(words).width <= width) context.fillText(words, x(t) + 3, HEIGHT - 8);
      }
    };
    const frame = (top, height, title, most, colour, ink) => {
      context.fillStyle = ink;
      context.fillText(title, LEFT, top - 4);
      context.fillStyle = colour("soft");
      context.textAlign = "right";
      context.fillText(most >= 10000 ? `${Math.round(most / 1000)}k` : `${+most.toPrecision(3)}`, LEFT - 4, top + 8);
      context.fillText("0", LEFT - 4, top + height);
      context.textAlign = "left";
      context.strokeStyle = colour("line");
      context.strokeRect(LEFT - 0.5, top - 0.5, width - LEFT - RIGHT + 1, height + 1);
    };
    const bars = (one, other, top, colour) => {
      const inks = [colour("same"), colour("less"), colour("more")], unit = GANTT / data.machine;
      context.save();
      context.beginPath();
      context.rect(LEFT, top, width - LEFT - RIGHT, GANTT);
      context.clip();
      for (let kind = 0; kind < 3; kind++) {
        context.fillStyle = inks[kind];
        for (let i = 0; i < one.row.length; i++) {
          const job = one.row[i], begin = one.start[job], end = one.end[job];
          if (begin > to || end < from) continue;
          const change = one.wait[job] - other.wait[job];
          if ((change < 0 ? 1 : change > 0 ? 2 : 0) !== kind) continue;
          const left = x(begin), wide = x(end) - left, high = (one.more[i] + 1) * unit, gap = wide > 4 && high > 3 ? 0.6 : 0;
          context.fillRect(left, top + GANTT - (one.low[i] + one.more[i] + 1) * unit, Math.max(wide - gap, 0.5), Math.max(high - gap, 0.5));
        }
      }
      context.restore();
    };
    const line = (pair, what, top, title, colour, inks, fixed) => {
      const points = Math.max(20, Math.floor((width - LEFT - RIGHT) / 2)), step = (to - from) / points;
      const values = pair.map((one) => Array.from({ length: points }, (_, i) => one[what](from + i * step, from + (i + 1) * step)));
      const most = fixed ?? Math.max(1, ...values.flat());
      frame(top, CURVE, title, most, colour, colour("text"));
      values.forEach((own, k) => {
        context.strokeStyle = inks[k];
        context.lineWidth = k ? 1.2 : 1.8;
        context.setLineDash(k ? [] : [5, 3]);
        context.beginPath();
        own.forEach((value, i) => context.lineTo(x(from + (i + 0.5) * step), top + CURVE - Math.min(value / most, 1) * CURVE));
        context.stroke();
      });
      context.setLineDash([]);
      context.lineWidth = 1;
    };

    const under = (px, py) => {
      const t = time(px), pair = shown();
      if (t < from || t > to) return "";
      for (const k of [0, 1]) {
        const top = scaleY(k), one = pair[k], other = pair[1 - k];
        if (py < top || py > top + GANTT) continue;
        const processor = (top + GANTT - py) / GANTT * data.machine;
        for (let i = 0; i < one.row.length; i++) {
          const job = one.row[i];
          if (one.start[job] <= t && t <= one.end[job] && one.low[i] <= processor && processor <= one.low[i] + one.more[i] + 1)
            return `job ${data.id[job]}: ${data.processors[job]} processors, runs ${lasts(one.run[job])}, waits ${lasts(one.wait[job])} (${other.name}: ${lasts(other.wait[job])})`;
        }
        return `${clock(t)}: idle`;
      }
      const about = (to - from) / width * 2;
      return `${clock(t)}. ${pair.map((one) => `${one.name}: ${one.queue(t, t + about).toFixed(1)} jobs wait, ${one.use(t, t + about).toFixed(0)} % in use`).join("; ")}`;
    };

    let grabbed = null;
    canvas.addEventListener("pointerdown", (event) => { grabbed = { at: event.offsetX, from, to }; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointerup", () => { grabbed = null; });
    canvas.addEventListener("pointercancel", () => { grabbed = null; });
    canvas.addEventListener("pointermove", (event) => {
      if (grabbed) {
        const by = (grabbed.at - event.offsetX) / (width - LEFT - RIGHT) * (grabbed.to - grabbed.from);
        move(grabbed.from + by, grabbed.to + by);
        tip.hidden = true;
        return;
      }
      window.showTip(under(event.offsetX, event.offsetY), event.clientX, event.clientY);
    });
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
    canvas.addEventListener("dblclick", (event) => zoom(0.5, time(event.offsetX)));
    // The wheel scrolls the page until the picture was clicked, or with Ctrl.
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && document.activeElement !== canvas) return;
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.25 : 0.8, time(event.offsetX));
    }, { passive: false });
    const ACTIONS = { in: () => zoom(0.5), out: () => zoom(2), left: () => pan(-0.5), right: () => pan(0.5), all: () => move(0, last), back: () => move(...data.view) };
    const KEYS = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", 0: "all", Home: "back" };
    canvas.addEventListener("keydown", (event) => {
      if (!(event.key in KEYS) || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      ACTIONS[KEYS[event.key]]();
    });
    for (const button of figure.querySelectorAll("button[data-action]")) button.addEventListener("click", () => ACTIONS[button.dataset.action]());
    new ResizeObserver(() => { if (canvas.clientWidth !== width) draw(); }).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    canvas.style.height = `${HEIGHT}px`;
    figure.classList.add("ready");
    draw();
  };
  for (const figure of document.querySelectorAll(".timeline")) chart(figure);
})();
