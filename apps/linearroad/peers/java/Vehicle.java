package linearroad;

import java.nio.ByteBuffer;

/** The last report of a vehicle on an expressway, and its speeds in the current minute. */
public final class Vehicle implements java.io.Serializable {
  static final int[] NONE = {};

  public int time = Integer.MIN_VALUE;
  public int seg;
  public int lane;
  public int dir;
  public int pos;
  /** How many reports from one place end with this one. */
  public int equal;
  /** The toll that was quoted for its segment. */
  public int quote;
  /** The minute of the speeds: for each segment its number, the sum of speeds, their number. */
  public int minute = -1;

  public int[] speeds = NONE;

  /** As bytes, for stores that keep no objects. */
  public byte[] bytes() {
    ByteBuffer bytes = ByteBuffer.allocate(4 * (8 + speeds.length));
    bytes.putInt(time).putInt(seg).putInt(lane).putInt(dir).putInt(pos).putInt(equal);
    bytes.putInt(quote).putInt(minute).asIntBuffer().put(speeds);
    return bytes.array();
  }

  /** The vehicle of such bytes. */
  public static Vehicle from(byte[] given) {
    ByteBuffer bytes = ByteBuffer.wrap(given);
    Vehicle made = new Vehicle();
    made.time = bytes.getInt();
    made.seg = bytes.getInt();
    made.lane = bytes.getInt();
    made.dir = bytes.getInt();
    made.pos = bytes.getInt();
    made.equal = bytes.getInt();
    made.quote = bytes.getInt();
    made.minute = bytes.getInt();
    made.speeds = new int[bytes.remaining() / 4];
    bytes.asIntBuffer().get(made.speeds);
    return made;
  }
}
