package linearroad;

import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.IntBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Ten weeks of history, mapped from the store of a generated directory (arrays of int32 in .npy
 * files). Copies of expressways and vehicles share the history of their originals.
 */
public final class History {
  private static final int MINUTES = 1440;
  private static final int SEGMENTS = 100;
  private static final int DAYS = 69;
  private static final double EXACT = 1e-9;
  private static History known;

  private final IntBuffer[] sums;
  private final IntBuffer[] vids;
  private final IntBuffer[] tolls;
  private final int baseVehicles;

  private History(String folder, int baseXways, int baseVehicles) throws IOException {
    this.baseVehicles = baseVehicles;
    sums = new IntBuffer[baseXways];
    vids = new IntBuffer[baseXways];
    tolls = new IntBuffer[baseXways];
    for (int x = 0; x < baseXways; x++) {
      Path store = Path.of(folder, "history", "store", String.format("xway-%05d", x));
      sums[x] = mapped(store.resolve("segment_sums.npy"));
      vids[x] = mapped(store.resolve("toll_vids.npy"));
      tolls[x] = mapped(store.resolve("tolls.npy"));
    }
  }

  /** The history of a directory, which all tasks of the process share. */
  public static synchronized History of(String folder, int baseXways, int baseVehicles)
      throws IOException {
    if (known == null) known = new History(folder, baseXways, baseVehicles);
    return known;
  }

  private static IntBuffer mapped(Path path) throws IOException {
    try (FileChannel file = FileChannel.open(path, StandardOpenOption.READ)) {
      MappedByteBuffer bytes = file.map(FileChannel.MapMode.READ_ONLY, 0, file.size());
      bytes.order(ByteOrder.LITTLE_ENDIAN);
      int header = 10 + bytes.getShort(8); // magic, version, the length of the header
      return bytes.position(header).slice().order(ByteOrder.LITTLE_ENDIAN).asIntBuffer();
    }
  }

  /** What a vehicle paid on an expressway on a day; 0 if nothing is known. */
  public int expenditure(int vid, int xway, int day) {
    IntBuffer found = vids[xway % vids.length];
    int wanted = vid % baseVehicles;
    int low = 0;
    int high = found.limit();
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (found.get(middle) < wanted) low = middle + 1;
      else high = middle;
    }
    boolean there = low < found.limit() && found.get(low) == wanted;
    return there ? tolls[xway % tolls.length].get(low * DAYS + day - 1) : 0;
  }

  /** Seconds and tolls of a journey, segment by segment at the minute each is reached. */
  public long[] travel(int xway, int first, int last, int dow, int start) {
    IntBuffer road = sums[xway % sums.length];
    int dir = first <= last ? 0 : 1;
    int step = first <= last ? 1 : -1;
    double taken = 0;
    long cost = 0;
    for (int segment = first; segment != last; segment += step) {
      int minute = ((int) (start + taken + EXACT) - 1) % MINUTES;
      int at = ((((dow - 1) * 2 + dir) * MINUTES + minute) * SEGMENTS + segment) * 3;
      long speeds = road.get(at);
      long cars = road.get(at + 1);
      long days = road.get(at + 2);
      if (speeds < 40 * days && cars / days > 50) {
        long over = cars / days - 50;
        cost += 2 * over * over;
      }
      taken += speeds <= days ? 60.0 : 60.0 * days / speeds;
    }
    return new long[] {(long) Math.floor(60 * taken + 0.5 + EXACT), cost};
  }
}
