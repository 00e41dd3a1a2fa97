package io.tributary.delta;

import io.delta.storage.S3SingleDriverLogStore;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * A log store for tables that other programs write, too, in stores that speak S3's protocol.
 *
 * <p>Delta's own (up to 4.4) looks whether an entry of the log exists and then writes it with a plain PUT, which replaces an entry
 * that another program has put there in between: the rows of that commit are lost. This one puts entries on the condition that there
 * is none (`If-None-Match: *`). It needs Hadoop 3.4.2 and a store that knows conditional puts.
 *
 * <p>An answer may be lost after the store has done what was asked, and the client then repeats the put and meets its own entry. So
 * after every failure the entry is read: if it has the bytes of this one, which begin with an id that Delta gives to one commit
 * only, the put has succeeded. Otherwise Delta would add its commit a second time.
 */
public class ConditionalS3LogStore extends S3SingleDriverLogStore {
  private static final String CONDITIONAL = "fs.option.create.conditional.overwrite";

  public ConditionalS3LogStore(Configuration configuration) {
    super(configuration);
  }

  @Override
  public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration configuration)
      throws IOException {
    if (overwrite) {
      super.write(path, actions, true, configuration);
      return;
    }
    byte[] entry = bytesOf(actions);
    FileSystem files = path.getFileSystem(configuration);
    Path place = resolvePathOnPhysicalStorage(path, configuration);
    try {
      put(files, place, entry);
    } catch (IOException failed) {
      byte[] found = read(files, place, failed);
      if (found == null) {
        throw failed;
      }
      if (!Arrays.equals(found, entry)) {
        FileAlreadyExistsException taken = new FileAlreadyExistsException(place.toString());
        taken.initCause(failed);
        throw taken;
      }
    }
  }

  private static void put(FileSystem files, Path place, byte[] entry) throws IOException {
    FSDataOutputStreamBuilder<?, ?> builder = files.createFile(place);
    builder.recursive().overwrite(true).must(CONDITIONAL, true);
    // The object is put when the stream is closed.
    try (FSDataOutputStream out = builder.build()) {
      out.write(entry);
    }
  }

  /** Returns the entry that is there, or null if there is none. A second failure is added to the first. */
  private static byte[] read(FileSystem files, Path place, IOException failed) {
    try (InputStream in = files.open(place)) {
      return in.readAllBytes();
    } catch (IOException unreadable) {
      failed.addSuppressed(unreadable);
      return null;
    }
  }

  private static byte[] bytesOf(Iterator<String> actions) {
    ByteArrayOutputStream entry = new ByteArrayOutputStream();
    while (actions.hasNext()) {
      entry.writeBytes((actions.next() + "\n").getBytes(StandardCharsets.UTF_8));
    }
    return entry.toByteArray();
  }
}
