"""tf.data over TFRecords of the same JPEG bytes: `--variant antialias` resizes like Pillow, `--variant plain` does not."""

from measure import RATIO, SCALE, SIZE, list_photos, measure, parse_arguments

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

RECORD_FILES = 8
SHUFFLE_BUFFER = 1000


def prepare(photos, out):
    os.makedirs(out)
    writers = [tf.io.TFRecordWriter(os.path.join(out, f"{n:02}.tfrecord")) for n in range(RECORD_FILES)]
    for number, (path, label) in enumerate(photos):
        with open(path, "rb") as file:
            features = {
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[file.read()])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            }
        example = tf.train.Example(features=tf.train.Features(feature=features))
        writers[number % RECORD_FILES].write(example.SerializeToString())
    for writer in writers:
        writer.close()


def build(arguments):
    features = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
    antialias = arguments.variant == "antialias"
    whole_image = tf.zeros([1, 0, 4])

    def decode(record):
        example = tf.io.parse_single_example(record, features)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.image.extract_jpeg_shape(example["image"]),
            whole_image,
            area_range=SCALE,
            aspect_ratio_range=RATIO,
            max_attempts=10,
            use_image_if_no_bounding_boxes=True,
        )
        top, left, _ = tf.unstack(begin)
        height, width, _ = tf.unstack(size)
        image = tf.io.decode_and_crop_jpeg(example["image"], tf.stack([top, left, height, width]), channels=3)
        image = tf.image.resize(image, [SIZE, SIZE], antialias=antialias)
        image = tf.image.random_flip_left_right(image)
        return tf.cast(image, tf.uint8), example["label"]

    files = tf.data.Dataset.list_files(os.path.join(arguments.prepared, "*.tfrecord"), shuffle=True)
    dataset = (
        files.interleave(tf.data.TFRecordDataset, cycle_length=RECORD_FILES)
        .shuffle(SHUFFLE_BUFFER)
        .map(decode, num_parallel_calls=arguments.workers)
        .batch(arguments.batch, drop_remainder=True)
        .prefetch(2)
    )
    options = tf.data.Options()
    options.threading.private_threadpool_size = arguments.workers
    options.threading.max_intra_op_parallelism = 1
    options.deterministic = False
    dataset = dataset.with_options(options)
    return lambda: (images for images, _ in dataset.as_numpy_iterator())


if __name__ == "__main__":
    tf.config.threading.set_intra_op_parallelism_threads(1)
    arguments = parse_arguments()
    if arguments.prepare:
        prepare(list_photos(arguments.photos), arguments.prepared)
    else:
        measure(
            "tf.data, antialiased resize" if arguments.variant == "antialias" else "tf.data, resize without antialiasing",
            f"tensorflow {tf.__version__}",
            build,
            arguments,
            notes=f"shuffle buffer of {SHUFFLE_BUFFER}",
        )
