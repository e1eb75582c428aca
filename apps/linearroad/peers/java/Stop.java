package linearroad;

/** The last stop of a vehicle: seconds from its fourth equal report on (2.5). */
public final class Stop implements java.io.Serializable {
  public int lane;
  public int dir;
  public int pos;
  public int begins;
  public int ends;

  /** The place as one number. */
  public long place() {
    return ((long) pos * 5 + lane) * 2 + dir;
  }
}
