package linearroad.spark;

import java.nio.ByteBuffer;

/**
 * What passes between the stages, as bytes: a row of the driver with its number in the stream, or
 * what an expressway tells the accounts. Each begins with its key.
 */
final class Message {
  static final int CHARGE = 0, BALANCE = 1, LINES = 2;

  private Message() {}

  static byte[] of(int... numbers) {
    ByteBuffer bytes = ByteBuffer.allocate(4 * numbers.length);
    for (int number : numbers) bytes.putInt(number);
    return bytes.array();
  }

  static int key(byte[] message) {
    return number(message, 0);
  }

  static int number(byte[] message, int place) {
    return ByteBuffer.wrap(message).getInt(4 * place);
  }

  static int[] numbers(byte[] message) {
    int[] numbers = new int[message.length / 4];
    ByteBuffer.wrap(message).asIntBuffer().get(numbers);
    return numbers;
  }

  /** Answers of an expressway, which the accounts only pass on. */
  static byte[] lines(int key, byte[] lines) {
    return ByteBuffer.allocate(8 + lines.length).putInt(key).putInt(LINES).put(lines).array();
  }
}
