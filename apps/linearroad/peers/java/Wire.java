package linearroad;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

/** The flat wire of the driver: rows of fifteen numbers, one per line; time marks have type 1. */
public final class Wire {
  public static final int TYPE = 0, TIME = 1, VID = 2, SPD = 3, XWAY = 4, LANE = 5, DIR = 6;
  public static final int SEG = 7, POS = 8, QID = 9, SINIT = 10, SEND = 11, DOW = 12, TOD = 13;
  public static final int DAY = 14, FIELDS = 15;
  public static final int REPORT = 0, MARK = 1, BALANCE = 2, EXPENDITURE = 3, TRAVEL = 4;

  private static Socket driver;

  private Wire() {}

  /** Tell where this system listens, and wait for its driver. */
  public static synchronized Socket driver() throws IOException {
    if (driver == null) {
      try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
        System.out.println("listening on 127.0.0.1:" + server.getLocalPort());
        System.out.flush();
        driver = server.accept();
      }
    }
    return driver;
  }

  /** Reads rows from bytes. */
  public static final class Rows {
    private final InputStream input;
    private final byte[] bytes = new byte[1 << 16];
    private int at;
    private int end;

    public Rows(InputStream input) {
      this.input = input;
    }

    /** The next row, in a new array; null at the end. */
    public int[] next() throws IOException {
      int[] row = new int[FIELDS];
      int field = 0;
      int value = 0;
      boolean minus = false;
      while (true) {
        if (at == end) {
          end = input.read(bytes);
          at = 0;
          if (end <= 0) return null;
        }
        byte one = bytes[at++];
        if (one >= '0') {
          value = 10 * value + one - '0';
        } else if (one == '-') {
          minus = true;
        } else if (one != '\r') {
          row[field++] = minus ? -value : value;
          value = 0;
          minus = false;
          if (one == '\n') return row;
        }
      }
    }
  }
}
