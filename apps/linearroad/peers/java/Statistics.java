package linearroad;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Averages and counts of the 200 segments of an expressway, and what is quoted in this minute. */
public final class Statistics implements java.io.Serializable {
  public static final int CELLS = 200;
  private static final int KEPT = 5;
  private static final double EXACT = 1e-9;

  /** The minute of the reports that are being added; -1 before the first. */
  public int minute = -1;

  public final int[] lav = new int[CELLS];
  public final int[] toll = new int[CELLS];
  /** The nearest segment with an accident; -1 if there is none. */
  public final int[] accident = new int[CELLS];

  // By segment: the sum of the mean speeds of the current minute's vehicles, and their number.
  private final double[] speeds = new double[CELLS];
  private final int[] vehicles = new int[CELLS];
  // The averages of the last five minutes that had reports, and which minutes they belong to.
  private final double[] average = new double[CELLS * KEPT];
  private final int[] averageOf = new int[CELLS * KEPT];
  private final int[] cars = new int[CELLS];

  public Statistics() {
    Arrays.fill(averageOf, Integer.MIN_VALUE);
    Arrays.fill(lav, -1);
    Arrays.fill(accident, -1);
  }

  /** The number of a segment of a direction. */
  public static int cell(int dir, int seg) {
    return 100 * dir + seg;
  }

  /** Add the speed of a report to those of its vehicle in this minute. */
  public void add(Vehicle vehicle, int cell, int speed) {
    if (vehicle.minute != minute) {
      vehicle.minute = minute;
      vehicle.speeds = Vehicle.NONE;
    }
    int at = 0;
    while (at < vehicle.speeds.length && vehicle.speeds[at] != cell) at += 3;
    if (at == vehicle.speeds.length) {
      vehicle.speeds = Arrays.copyOf(vehicle.speeds, at + 3);
      vehicle.speeds[at] = cell;
      vehicles[cell]++;
    } else {
      speeds[cell] -= (double) vehicle.speeds[at + 1] / vehicle.speeds[at + 2];
    }
    vehicle.speeds[at + 1] += speed;
    vehicle.speeds[at + 2]++;
    speeds[cell] += (double) vehicle.speeds[at + 1] / vehicle.speeds[at + 2];
  }

  /** Complete the current minute and compute what is quoted in another one (2.4, 2.7). */
  public void begin(int now, Iterable<Stop> stops) {
    Arrays.fill(cars, 0);
    for (int cell = 0; cell < CELLS; cell++) {
      if (vehicles[cell] == 0) continue;
      int place = cell * KEPT + minute % KEPT;
      average[place] = speeds[cell] / vehicles[cell];
      averageOf[place] = minute;
      if (minute == now - 1) cars[cell] = vehicles[cell];
      speeds[cell] = 0;
      vehicles[cell] = 0;
    }
    Arrays.fill(accident, -1);
    markAccidents(now, stops);
    for (int cell = 0; cell < CELLS; cell++) {
      double sum = 0;
      int count = 0;
      for (int place = cell * KEPT; place < (cell + 1) * KEPT; place++) {
        if (averageOf[place] < now - KEPT) continue;
        sum += average[place];
        count++;
      }
      lav[cell] = count == 0 ? -1 : (int) Math.floor(sum / count + EXACT);
      int over = cars[cell] - 50;
      toll[cell] = lav[cell] < 40 && over > 0 && accident[cell] < 0 ? 2 * over * over : 0;
    }
    minute = now;
  }

  /** Two vehicles that stand at one place in a second of the minute before (2.6). */
  private void markAccidents(int now, Iterable<Stop> stops) {
    Map<Long, List<Stop>> places = new HashMap<>();
    for (Stop stop : stops) {
      if (stop.ends > 60 * (now - 1) && stop.begins < 60 * now)
        places.computeIfAbsent(stop.place(), key -> new ArrayList<>()).add(stop);
    }
    for (List<Stop> here : places.values()) {
      for (int i = 0; i < here.size(); i++) {
        for (int j = 0; j < i; j++) {
          Stop a = here.get(i);
          Stop b = here.get(j);
          int begins = Math.max(Math.max(a.begins, b.begins), 60 * (now - 1));
          int ends = Math.min(Math.min(a.ends, b.ends), 60 * now);
          if (begins < ends) mark(a.dir, a.pos / 5280);
        }
      }
    }
  }

  private void mark(int dir, int segment) {
    for (int distance = 0; distance <= 4; distance++) {
      int upstream = dir == 0 ? segment - distance : segment + distance;
      if (upstream < 0 || upstream > 99) break;
      int cell = cell(dir, upstream);
      boolean nearer = dir == 0 ? segment < accident[cell] : segment > accident[cell];
      if (accident[cell] < 0 || nearer) accident[cell] = segment;
    }
  }
}
