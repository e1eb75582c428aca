package linearroad;

import static linearroad.Wire.*;

import java.nio.charset.StandardCharsets;

/** What follows from a report of a vehicle (sections 2.3 to 2.8 of the rules). */
public final class Trip {
  /** Receives answers, as lines, and charges. */
  public interface Output {
    void line(byte[] line);

    void charge(int vid, int time, int toll);
  }

  private Trip() {}

  /**
   * Answer a report and remember it in its vehicle, unless it is the second one of a second.
   * Returns whether the stop of the vehicle must be updated.
   */
  public static boolean report(int[] row, Vehicle last, Statistics segments, Output out) {
    int time = row[TIME];
    int vid = row[VID];
    if (last.time == time) return false;
    boolean goesOn = last.time == time - 30;
    boolean entered = !goesOn || last.seg != row[SEG];
    boolean same =
        goesOn && last.lane == row[LANE] && last.dir == row[DIR] && last.pos == row[POS];
    boolean stood = last.equal >= 4;
    last.equal = same ? last.equal + 1 : 1;
    int cell = Statistics.cell(row[DIR], row[SEG]);
    segments.add(last, cell, row[SPD]);
    if (goesOn && entered && last.quote > 0) out.charge(vid, time, last.quote);
    if (entered) {
      last.quote = 0;
      if (row[LANE] != 4) {
        last.quote = segments.toll[cell];
        out.line(line("0", vid, time, time, segments.lav[cell], last.quote));
        if (segments.accident[cell] >= 0)
          out.line(line("1", time, time, vid, segments.accident[cell]));
      }
    }
    last.time = time;
    last.seg = row[SEG];
    last.lane = row[LANE];
    last.dir = row[DIR];
    last.pos = row[POS];
    return stands(last) || stood;
  }

  private static boolean stands(Vehicle vehicle) {
    return vehicle.equal >= 4 && vehicle.lane >= 1 && vehicle.lane <= 3;
  }

  /** The stop of a vehicle after its report, given the one before; null if it has none. */
  public static Stop stop(Vehicle vehicle, Stop before) {
    if (!stands(vehicle)) {
      if (before != null) before.ends = Math.min(before.ends, vehicle.time);
      return before;
    }
    Stop stop = new Stop();
    stop.lane = vehicle.lane;
    stop.dir = vehicle.dir;
    stop.pos = vehicle.pos;
    stop.begins = vehicle.time - 30 * (vehicle.equal - 4);
    stop.ends = vehicle.time + 30;
    return stop;
  }

  /** The answer to a request that only history answers. */
  public static byte[] request(int[] row, History history) {
    if (row[TYPE] == EXPENDITURE) {
      int spent = history.expenditure(row[VID], row[XWAY], row[DAY]);
      return line("3", row[TIME], row[TIME], row[QID], spent);
    }
    long[] found = history.travel(row[XWAY], row[SINIT], row[SEND], row[DOW], row[TOD]);
    return line("4", row[TIME], row[TIME], row[QID], found[0], found[1]);
  }

  /** A line of the flat format. */
  public static byte[] line(String kind, long... fields) {
    StringBuilder text = new StringBuilder(48).append(kind);
    for (long field : fields) text.append(',').append(field);
    return text.append('\n').toString().getBytes(StandardCharsets.ISO_8859_1);
  }
}
